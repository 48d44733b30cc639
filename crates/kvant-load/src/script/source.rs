//! A thread's source of requests: calls the script in its own state.
//!
//! 1. The text that the script returns is sent byte for byte.
//! 2. Its requests are counted exactly: text that is not from `wrk.format` is parsed for
//!    boundaries, unless it equals the previous one.
//! 3. An error of the script is an error of the run.

use super::batch::{self, Malformed};
use super::classify::{self, Classifier};
use super::response::ResponseHook;
use super::state::{self, State, TagTable};
use super::thread::ThreadShared;
use crate::op::{OpId, OpNames};
use crate::source::{Batch, Expected, RequestSource, ResponseView};
use crate::target::{Address, Target};
use kvant_base::{Error, Result};
use mlua::{BString, Function, Table};
use std::sync::Arc;
use std::time::Duration;

/// A longer result of `delay()`, in milliseconds, counts as this: a day.
const DELAY_MAX_MS: f64 = 86_400_000.0;

/// Calls a script.
pub(super) struct ScriptSource {
    state: Arc<State>,
    shared: Arc<ThreadShared>,
    requests: Requests,
    response: Option<ResponseHook>,
    delay: Option<Function>,
}

enum Requests {
    /// The script has no `request()`: constant, by target.
    Prebuilt(Vec<RequestText>),
    /// `request()` makes them.
    Called(Box<RequestHook>),
}

/// Text with its requests.
#[derive(Default)]
struct RequestText {
    bytes: BString,
    requests: Vec<Expected>,
    /// It is from `wrk.format`.
    is_single: bool,
}

/// Calls `request()`.
struct RequestHook {
    state: Arc<State>,
    request: Function,
    last: RequestText,
    reader: RequestParser,
    /// The fields of `wrk` by target; empty if there is only one.
    targets: Vec<Table>,
    target: usize,
}

/// Finds the requests of a text and their kinds.
struct RequestParser {
    classifier: Classifier,
    tags: TagTable,
    /// A copy of `tags`, extended on demand.
    known_tags: Vec<OpId>,
    /// The tag of the previous text.
    last_tag: usize,
}

impl ScriptSource {
    /// The source of a thread whose state has run `init`.
    pub(super) fn new(
        state: &Arc<State>,
        shared: &Arc<ThreadShared>,
        targets: &[Target],
        ops: &OpNames,
    ) -> Result<ScriptSource> {
        let mut caller = RequestHook::new(state, targets, ops)?;
        // Decided once, as in wrk: a later redefinition of `request` takes effect, but not a first
        // definition.
        let requests = if state.defines("request")? {
            Requests::Called(Box::new(caller))
        } else {
            let made = (0..targets.len()).map(|target| {
                caller.make(target)?;
                Ok(std::mem::take(&mut caller.last))
            });
            Requests::Prebuilt(made.collect::<Result<_>>()?)
        };
        Ok(ScriptSource {
            requests,
            response: if state.defines("response")? {
                Some(ResponseHook::new(state)?)
            } else {
                None
            },
            delay: if state.defines("delay")? { Some(state.entry("delay")?) } else { None },
            state: Arc::clone(state),
            shared: Arc::clone(shared),
        })
    }

    /// Verifies a text, which `request()` makes for this purpose; returns a warning about a
    /// suspicious header.
    pub(super) fn verify(&mut self) -> Result<Option<String>> {
        let made = self.requests.next(0)?;
        let odd_header = batch::odd_header(&made.bytes);
        // A single request with an odd header is intended; only the server decides how it reads it.
        if !made.is_single || odd_header.is_none() {
            check(&made.bytes)
                .map_err(|malformed| malformed_request(&self.state, &malformed, &made.bytes))?;
        }
        Ok(odd_header.map(|(name, odd)| {
            format!(
                "request() returned the header `{name}` with the control character {odd:?}: it is sent as it is, as wrk2 \
                 sends it, and servers may refuse it"
            )
        }))
    }
}

/// Checks all request lines and boundaries of `bytes`.
fn check(bytes: &[u8]) -> std::result::Result<(), Malformed> {
    let check_line = |start: usize| {
        batch::check_first_line(&bytes[start..]).map_err(|malformed| Malformed {
            offset_bytes: start + malformed.offset_bytes,
            ..malformed
        })
    };
    let mut first_lines = Ok(());
    let boundaries =
        batch::for_each_request(bytes, |start, _| first_lines = first_lines.and(check_line(start)));
    // A bad request line makes the boundaries meaningless: report the first problem.
    check_line(batch::after_line_breaks(bytes, 0)).and(first_lines).and(boundaries)
}

fn malformed_request(state: &State, malformed: &Malformed, bytes: &[u8]) -> Error {
    state.failed("request", &mlua::Error::RuntimeError(malformed.describe(bytes)))
}

impl RequestSource for ScriptSource {
    fn next(&mut self, target: usize) -> Result<Batch<'_>> {
        let made = self.requests.next(target)?;
        Ok(Batch { bytes: &made.bytes, requests: &made.requests })
    }

    fn address(&self) -> Option<Address> {
        self.shared.chosen_address()
    }

    fn observes(&self) -> bool {
        self.response.is_some()
    }

    fn observe(&mut self, view: &ResponseView<'_>) -> Result<()> {
        let Some(response) = &self.response else {
            return Ok(());
        };
        response.call(&self.state.lua, view).map_err(|error| self.state.failed("response", &error))
    }

    fn delays(&self) -> bool {
        self.delay.is_some()
    }

    fn delay(&mut self) -> Result<Duration> {
        let Some(delay) = &self.delay else {
            return Ok(Duration::ZERO);
        };
        let delay_ms: f64 = delay.call(()).map_err(|error| self.state.failed("delay", &error))?;
        // Negative or NaN: none.
        let delay_ms = if delay_ms > 0.0 { delay_ms.min(DELAY_MAX_MS) } else { 0.0 };
        Ok(Duration::from_secs_f64(delay_ms / 1e3))
    }

    fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }
}

impl Requests {
    /// The next text for a target.
    fn next(&mut self, target: usize) -> Result<&RequestText> {
        match self {
            Requests::Prebuilt(made) => Ok(&made[target]),
            Requests::Called(caller) => {
                caller.make(target)?;
                Ok(&caller.last)
            }
        }
    }
}

impl RequestHook {
    fn new(state: &Arc<State>, targets: &[Target], ops: &OpNames) -> Result<RequestHook> {
        let tables = if targets.len() > 1 { targets } else { &[] };
        let tables = tables.iter().map(|target| state::target_table(&state.lua, target));
        Ok(RequestHook {
            request: state.entry("request")?,
            last: RequestText::default(),
            reader: RequestParser {
                classifier: Classifier::new(ops.clone()),
                tags: Arc::clone(&state.tags),
                known_tags: Vec::new(),
                last_tag: 0,
            },
            targets: tables
                .collect::<mlua::Result<_>>()
                .map_err(|error| state.failed("request", &error))?,
            target: 0,
            state: Arc::clone(state),
        })
    }

    /// Makes the next text.
    fn make(&mut self, target: usize) -> Result<()> {
        if target != self.target {
            let (from, to) = (&self.targets[self.target], &self.targets[target]);
            self.state.call::<()>("retarget", (from, to))?;
            self.target = target;
        }
        let called = self.request.call::<(BString, u32)>(());
        let (bytes, code) = called.map_err(|error| self.state.failed("request", &error))?;
        let read = self.reader.read(&bytes, code, &mut self.last);
        self.last.bytes = bytes;
        read.map_err(|malformed| malformed_request(&self.state, &malformed, &self.last.bytes))
    }
}

impl RequestParser {
    /// Updates `last`, which holds the previous text, with the requests of `bytes`.
    fn read(
        &mut self,
        bytes: &[u8],
        code: u32,
        last: &mut RequestText,
    ) -> std::result::Result<(), Malformed> {
        let is_single = code & 1 == 1;
        let tag = (code >> 1) as usize;
        if is_single {
            let expected = self.expected(bytes, tag);
            last.requests.clear();
            last.requests.push(expected);
            last.is_single = true;
            self.last_tag = tag;
            return Ok(());
        }
        if tag == self.last_tag && !last.requests.is_empty() && *last.bytes == *bytes {
            return Ok(());
        }
        self.last_tag = tag;
        last.is_single = false;
        last.requests.clear();
        batch::for_each_request(bytes, |_, request| last.requests.push(self.expected(request, tag)))
    }

    fn expected(&mut self, request: &[u8], tag: usize) -> Expected {
        if tag == 0 {
            return self.classifier.classify(request);
        }
        if tag > self.known_tags.len() {
            self.known_tags.clone_from(&self.tags.lock());
        }
        Expected { op: self.known_tags[tag - 1], is_head: classify::is_head(request) }
    }
}
