//! Errors of Lua, in words for the author of the script.

use kvant_base::Error;

/// Lua names this file for errors in the prelude. Such a place means nothing to the author of a
/// script and is removed.
pub(super) const PRELUDE_NAME: &str = "[wrk]";

/// `error` as an error of the top level of `script`, or of its `function`.
pub(super) fn in_script(script: &str, function: Option<&str>, error: &mlua::Error) -> Error {
    let message = message(error);
    // LuaJIT shortens the beginning of a long path to dots.
    let is_located = message.starts_with("...")
        || message.strip_prefix(script).is_some_and(|rest| rest.starts_with(':'));
    let message = if is_located { message } else { format!("{script}: {message}") };
    Error::invalid(match function {
        Some(function) => format!("{function}() failed: {message}"),
        None => message,
    })
}

/// The message of Lua, with file and line if it has them, without the traceback.
fn message(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => text.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::CallbackError { traceback, cause } => located(&message(cause), traceback),
        mlua::Error::WithContext { context, cause } => format!("{context}: {}", message(cause)),
        mlua::Error::BadArgument { pos, cause, .. } => {
            format!("argument {pos}: {}", message(cause))
        }
        mlua::Error::FromLuaConversionError { from, to, .. } => {
            format!("a {from} where a {to} is expected")
        }
        mlua::Error::ExternalError(cause) => cause.to_string(),
        other => other.to_string(),
    };
    let text = text.split("\nstack traceback:").next().unwrap_or_default();
    without_prelude(text).to_owned()
}

/// Removes a place in the prelude from the start of `text`.
fn without_prelude(text: &str) -> &str {
    let place = text.strip_prefix(PRELUDE_NAME).and_then(|rest| rest.strip_prefix(':'));
    match place.and_then(|rest| rest.split_once(": ")) {
        Some((line, message)) if line.bytes().all(|byte| byte.is_ascii_digit()) => message,
        _ => text,
    }
}

/// Adds the place of an error in a function of this program: the first frame of a script in the
/// traceback.
fn located(text: &str, traceback: &str) -> String {
    let frames = traceback.lines().map(str::trim);
    let mut in_scripts = frames.filter(|frame| {
        !frame.starts_with("[C]")
            && !frame.starts_with(PRELUDE_NAME)
            && !frame.starts_with("__mlua")
            && !frame.starts_with("stack traceback")
    });
    match in_scripts.find_map(place_of_frame) {
        Some(place) => format!("{place}: {text}"),
        None => text.to_owned(),
    }
}

/// `put.lua:12` of `put.lua:12: in function 'request'`.
fn place_of_frame(frame: &str) -> Option<&str> {
    let (place, _what) = frame.split_once(": in ")?;
    let (_file, line) = place.rsplit_once(':')?;
    line.bytes().all(|byte| byte.is_ascii_digit()).then_some(place)
}
