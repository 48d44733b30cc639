//! Calls a script's `response(status, headers, body)`.

use super::state::State;
use crate::source::ResponseView;
use kvant_base::Result;
use mlua::{Function, Lua};

/// Most headers of the fast path: the limit of arguments of a call, less status and body.
const FEW_HEADERS: usize = 7;

/// Calls `response`.
pub(super) struct ResponseHook {
    response: Function,
    response_of_few: Function,
}

impl ResponseHook {
    /// The entries of `state`.
    pub(super) fn new(state: &State) -> Result<ResponseHook> {
        Ok(ResponseHook {
            response: state.entry("response")?,
            response_of_few: state.entry("response_of_few")?,
        })
    }

    /// Passes `view` to the script, with the last of several headers of the same name, as in wrk.
    pub(super) fn call(&self, lua: &Lua, view: &ResponseView<'_>) -> mlua::Result<()> {
        match (text_of(view.headers), std::str::from_utf8(view.body)) {
            (Some(pairs), Ok(body)) => self.call_with_few(view.status, body, pairs),
            _ => self.call_with_any(lua, view),
        }
    }

    /// Passes text arguments directly: building a table here would cost a call into Lua per header.
    fn call_with_few(&self, status: u16, body: &str, pairs: Pairs<'_>) -> mlua::Result<()> {
        let [(n1, v1), (n2, v2), (n3, v3), (n4, v4), (n5, v5), (n6, v6), (n7, v7)] = pairs;
        self.response_of_few
            .call((status, body, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7))
    }

    fn call_with_any(&self, lua: &Lua, view: &ResponseView<'_>) -> mlua::Result<()> {
        let headers = lua.create_table_with_capacity(0, view.headers.len())?;
        for (name, value) in view.headers {
            headers.raw_set(*name, lua.create_string(value)?)?;
        }
        self.response.call((view.status, headers, lua.create_string(view.body)?))
    }
}

/// Names and values, absent after the last.
type Pairs<'a> = [(Option<&'a str>, Option<&'a str>); FEW_HEADERS];

/// `headers`, if they are few and UTF-8.
fn text_of<'a>(headers: &[(&'a str, &'a [u8])]) -> Option<Pairs<'a>> {
    let mut pairs: Pairs<'_> = [(None, None); FEW_HEADERS];
    if headers.len() > pairs.len() {
        return None;
    }
    for (pair, (name, value)) in pairs.iter_mut().zip(headers) {
        *pair = (Some(name), Some(std::str::from_utf8(value).ok()?));
    }
    Some(pairs)
}
