//! Errors of scripts are reported with file and line.

use super::{load, load_with, options};
use crate::source::ResponseView;
use kvant_env::Env;
use std::path::Path;

/// The error of starting `script`.
fn refusal(script: &str) -> String {
    load_with(script, &options(1)).expect_err("does not start").message().to_owned()
}

#[test]
fn a_failing_script_does_not_start() {
    let cases = [
        ("function request(", "test.lua:1: <name> or '...' expected near '<eof>'"),
        ("\n\nlocal x = nil + 1", "test.lua:3: attempt to perform arithmetic on a nil value"),
        ("\nerror('by hand')", "test.lua:2: by hand"),
        (
            "function setup(thread)\n undefined() end",
            "setup() failed: test.lua:2: attempt to call global 'undefined' (a nil value)",
        ),
        (
            "function init(args)\n args.x.y = 1 end",
            "init() failed: test.lua:2: attempt to index field 'x' (a nil value)",
        ),
        (
            "function request()\n return wrk.format('GET', {})  .. '' end",
            "request() failed: test.lua:2: wrk.format: the path is a table, not a string",
        ),
        (
            "function request() return wrk.format('GET', nil, 'X: y') end",
            "request() failed: test.lua: wrk.format: the headers are a string, not a table",
        ),
        ("wrk.body = {}", "init() failed: test.lua: wrk.format: the body is a table, not a string"),
        (
            "function request() end",
            "request() failed: test.lua: request() returned a nil value, not the text of a request",
        ),
        (
            "function request() return 'GET /' end",
            "request() failed: test.lua: incomplete request: no empty line after the headers at 1:6 of the text that request() returned",
        ),
        (
            "function request() return wrk.format('GET', '/?id=a b') end",
            "request() failed: test.lua: neither HTTP/1.1 nor HTTP/1.0 after the path (a space in the path?) at 1:11 of the text that request() returned",
        ),
        (
            "function request() return '' end",
            "request() failed: test.lua: no request at 1:1 of the text that request() returned",
        ),
        (
            "function request() return wrk.format() .. 'X' end",
            "request() failed: test.lua: incomplete request: no empty line after the headers at 4:2 of the text that request() returned",
        ),
        (
            "wrk.tag = {} function request() return wrk.format() end",
            "request() failed: test.lua: wrk.tag is a table, not a string",
        ),
        (
            "wrk.lookup('127.0.0.1', 'no-such-service')",
            "test.lua:1: unable to resolve 127.0.0.1:no-such-service: the service is neither a port, http nor https",
        ),
        (
            "function setup(t)\n t.addr = 5 end",
            "setup() failed: test.lua:2: thread.addr takes an address of wrk.lookup, not a number",
        ),
        (
            "function setup(t) t.name = 'x' end",
            "setup() failed: test.lua:1: cannot set 'string' on thread",
        ),
        (
            "function setup(t) t:set('f', print) end",
            "setup() failed: test.lua:1: cannot transfer 'function' to thread",
        ),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .map(|(script, expected)| (script, *expected, refusal(script)))
        .filter(|(_, expected, found)| found != expected)
        .map(|(script, expected, found)| {
            format!("{script}\n  expected {expected}\n  found    {found}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// wrk2 sends any header that a script returns, and so does this program, with a warning.
#[test]
fn a_control_character_in_a_header_is_sent_with_a_warning() {
    for (code, shown) in [(0, r"'\0'"), (10, r"'\n'"), (20, r"'\u{14}'"), (30, r"'\u{1e}'")] {
        for (method, headers) in [("GET", "{}"), ("PUT", "{['X-A'] = 'b'}")] {
            let script = format!(
                "function request()
                    local headers = {headers}
                    headers['Host'] = 'localhost:808' .. string.char({code})
                    return wrk.format('{method}', '/?id=a', headers, '{method}' == 'PUT' and 'body' or nil)
                end"
            );
            let mut script = load(&script);
            let [warning] = script.warnings() else {
                panic!("{code}: {:?}", script.warnings());
            };
            assert!(warning.contains("the header `Host`") && warning.contains(shown), "{warning}");
            let mut source = script.sources().remove(0);
            let batch = source.next(0).expect("it is sent");
            let sent = format!("Host: localhost:808{}\r\n", char::from(code));
            let has = batch.bytes.windows(sent.len()).any(|part| part == sent.as_bytes());
            assert!(has && batch.requests.len() == 1, "{code}");
        }
    }
}

#[test]
fn a_header_that_ends_the_head_early_is_named() {
    let script = "function request()
        return 'GET / HTTP/1.1\\r\\nX-Token: a\\r\\n\\r\\nHost: b\\r\\n\\r\\n' end";
    assert_eq!(
        refusal(script),
        "request() failed: test.lua: invalid method at 4:5 of the text that request() returned; the head before it ends \
         behind the header `X-Token`: is there a line break in its value?"
    );
}

#[test]
fn empty_lines_around_requests_belong_to_none() {
    let script = "function request() return '\\r\\nGET / HTTP/1.1\\r\\n\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n\\n' end";
    let mut script = load(script);
    assert_eq!(script.sources().remove(0).next(0).expect("text").requests.len(), 2);
}

#[test]
fn a_later_failure_of_request_is_an_error_of_the_run() {
    let script = "local n = 0\nfunction request() n = n + 1\n if n == 3 then error('enough') end return wrk.format() end";
    let mut source = load(script).sources().remove(0);
    source.next(0).expect("the second");
    let error = source.next(0).expect_err("the third fails");
    assert_eq!(error.message(), "request() failed: test.lua:3: enough");
}

#[test]
fn a_later_truncated_text_is_an_error_of_the_run() {
    let script = "local n = 0 function request() n = n + 1
        return n < 2 and 'GET / HTTP/1.1\\r\\n\\r\\n' or 'PUT / HTTP/1.1\\r\\nContent-Length: 3\\r\\n\\r\\nab' end";
    let mut source = load(script).sources().remove(0);
    let error = source.next(0).expect_err("a byte is missing");
    assert!(
        error.message().contains("the body is shorter than its Content-Length at 4:3"),
        "{error}"
    );
}

#[test]
fn a_failing_response_or_delay_is_an_error_of_the_run() {
    let script = "function response(status, headers, body)\n local n = headers.absent + 1 end\nfunction delay() return {} end";
    let mut source = load(script).sources().remove(0);
    let view = ResponseView { status: 200, headers: &[], body: b"" };
    let error = source.observe(&view).expect_err("fails");
    assert_eq!(
        error.message(),
        "response() failed: test.lua:2: attempt to perform arithmetic on field 'absent' (a nil value)"
    );
    let error = source.delay().expect_err("fails");
    assert_eq!(
        error.message(),
        "delay() failed: test.lua: delay() returned a table value, not milliseconds"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = super::Script::load(Path::new("/nowhere/put.lua"), &options(1), &Env::posix())
        .expect_err("no file");
    assert!(error.to_string().contains("/nowhere/put.lua"), "{error}");
}

#[test]
fn a_script_may_catch_errors() {
    let script = "
        local ok, message = pcall(wrk.lookup, '127.0.0.1', 'nope')
        assert(not ok and tostring(message):find('unable to resolve'), message)
        local ok, message = pcall(error, 'x')
        assert(message == 'x')
        assert(debug.traceback('here'):find('stack traceback'))
        assert(debug.getinfo(1).currentline == 7 and debug.getinfo(1, 'S').source == '@test.lua')";
    load(script);
}

#[test]
fn a_script_has_all_libraries_of_luajit() {
    load(
        "
        local ffi = require 'ffi'
        ffi.cdef 'int getpid(void);'
        assert(ffi.C.getpid() > 0)
        local count = 0
        debug.sethook(function() count = count + 1 end, 'l')
        local x = 1
        debug.sethook()
        assert(count > 0)
        assert(bit.band(6, 3) == 2 and jit.status() == true and string.format('%q', 'a') == '\"a\"')
        assert(io.open and os.getenv and table.concat and math.floor and coroutine.wrap)",
    );
}
