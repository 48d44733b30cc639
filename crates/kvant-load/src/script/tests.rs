//! Scripts in common styles, each with the bytes that it must make.

mod failures;
mod hooks;
mod outcomes;
mod randomness;
mod threads;

use super::{Options, Script};
use crate::op::OpNames;
use crate::source::RequestSource;
use crate::target::{Address, Target};
use kvant_env::Env;

const URL: &str = "http://127.0.0.1:8080/v0/status";

pub(super) fn target(port: u16, path: &str) -> Target {
    Target {
        url: format!("http://127.0.0.1:{port}{path}"),
        is_tls: false,
        host: "127.0.0.1".to_owned(),
        port: Some(port),
        authority: format!("127.0.0.1:{port}"),
        path: path.to_owned(),
        addresses: vec![Address::Tcp(([127, 0, 0, 1], port).into())],
    }
}

pub(super) fn options(thread_count: usize) -> Options {
    Options {
        targets: vec![target(8080, "/v0/status")],
        headers: Vec::new(),
        args: Vec::new(),
        thread_count,
        seed: None,
        is_wrk2_exact: false,
        ops: OpNames::default(),
    }
}

pub(super) fn load_with(source: &str, options: &Options) -> kvant_base::Result<Script> {
    Script::from_source("test.lua", source.as_bytes(), options, &Env::posix())
}

pub(super) fn load(source: &str) -> Script {
    load_with(source, &options(1)).expect("the script starts")
}

/// The next text of `source` for target 0.
pub(super) fn next(source: &mut Box<dyn RequestSource>) -> String {
    let batch = source.next(0).expect("the script makes a request");
    assert!(!batch.requests.is_empty());
    String::from_utf8(batch.bytes.to_vec()).expect("text")
}

/// The first lines of the next `count` texts of the first thread.
pub(super) fn first_lines(source: &str, count: usize) -> Vec<String> {
    let mut sources = load(source).sources();
    (0..count)
        .map(|_| next(&mut sources[0]).lines().next().unwrap_or_default().to_owned())
        .collect()
}

/// Head and body. The lines of the head after the first are sorted, as headers have no order.
fn parts(request: &str) -> (Vec<String>, String) {
    let (head, body) = request.split_once("\r\n\r\n").expect("an empty line");
    let mut lines: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    lines[1..].sort();
    (lines, body.to_owned())
}

fn assert_request(request: &str, head: &[&str], body: &str) {
    let (found_head, found_body) = parts(request);
    assert_eq!(found_head, head, "of {request:?}");
    assert_eq!(found_body, body);
}

#[test]
fn a_script_without_request_sends_the_same_text_without_lua() {
    let script = "
        wrk.method = 'POST' wrk.body = 'a=1' wrk.headers['Content-Type'] = 'text/plain'
        local init, calls = wrk.init, 0
        function wrk.init(args)
            init(args)
            local make = wrk.request
            wrk.request = function() calls = calls + 1 assert(calls == 1) return make() end
        end";
    let mut source = load(script).sources().remove(0);
    let head = [
        "POST /v0/status HTTP/1.1",
        "Content-Length: 3",
        "Content-Type: text/plain",
        "Host: 127.0.0.1:8080",
    ];
    for _ in 0..3 {
        assert_request(&next(&mut source), &head, "a=1");
    }
}

#[test]
fn an_empty_script_requests_the_url() {
    let request = next(&mut load("").sources()[0]);
    assert_eq!(request, "GET /v0/status HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
}

#[test]
fn the_first_request_of_a_counter_is_made_at_the_start_and_not_sent() {
    let script = "
        counter = 0
        function request()
            counter = counter + 1
            return wrk.format('PUT', '/v0/entity?id=k' .. counter, nil, 'value ' .. counter)
        end";
    let mut source = load(script).sources().remove(0);
    let head = ["PUT /v0/entity?id=k2 HTTP/1.1", "Content-Length: 7", "Host: 127.0.0.1:8080"];
    assert_request(&next(&mut source), &head, "value 2");
    let head = ["PUT /v0/entity?id=k3 HTTP/1.1", "Content-Length: 7", "Host: 127.0.0.1:8080"];
    assert_request(&next(&mut source), &head, "value 3");
}

#[test]
fn only_the_first_thread_loses_a_request() {
    let script = "local n = 0 function request() n = n + 1 return wrk.format('GET', '/' .. n) end";
    let mut sources = load_with(script, &options(3)).expect("starts").sources();
    let firsts: Vec<String> =
        sources.iter_mut().map(|source| next(source)[..6].to_owned()).collect();
    assert_eq!(firsts, ["GET /2", "GET /1", "GET /1"]);
}

#[test]
fn format_modifies_its_headers() {
    let script = "
        local mine = { ['X-A'] = 1 }
        wrk.headers['X-Common'] = 'yes'
        local turn = 0
        function request()
            turn = turn + 1
            if turn == 2 then return wrk.format('PUT', '/own', mine, 'four') end
            if turn == 3 then return wrk.format('PUT', '/' .. mine['Content-Length'] .. mine.Host, mine, 'to') end
            if turn == 4 then return wrk.format('GET', '/' .. tostring(mine['Content-Length']), mine) end
            if turn == 5 then mine['X-A'] = nil mine['X-B'] = true return wrk.format(nil, nil, mine) end
            return wrk.format()
        end";
    let mut source = load(script).sources().remove(0);
    let host = "Host: 127.0.0.1:8080";
    assert_request(
        &next(&mut source),
        &["PUT /own HTTP/1.1", "Content-Length: 4", host, "X-A: 1"],
        "four",
    );
    let head = ["PUT /4127.0.0.1:8080 HTTP/1.1", "Content-Length: 2", host, "X-A: 1"];
    assert_request(&next(&mut source), &head, "to");
    assert_request(&next(&mut source), &["GET /2 HTTP/1.1", host, "X-A: 1"], "");
    assert_request(&next(&mut source), &["GET /v0/status HTTP/1.1", host, "X-B: true"], "");
    assert_request(&next(&mut source), &["GET /v0/status HTTP/1.1", host, "X-Common: yes"], "");
}

#[test]
fn a_changed_header_is_never_missed() {
    // All ways of changing a table between two calls.
    let script = "
        local changes = {
            function(h) h.A = '1' end, function(h) h.A = '2' end, function(h) h.B = h.A end, function(h) h.A = nil end,
            function(h) h.C, h.B = h.B, nil end, function(h) h.C = 5 end, function(h) h.C = '5' end, function(h) h.C = 6 end,
            function(h) wrk.headers = { D = 'x', Host = h.Host } end, function(h) h.D = nil end, function() end,
            function(h) h.E = setmetatable({ n = 0 }, { __tostring = function(t) t.n = t.n + 1 return 'call' .. t.n end }) end,
            function() end, function(h) h.E = nil h[1] = 'one' end, function(h) h[2] = 'two' end, function(h) h[1] = nil end,
        }
        local turn = 0
        function request()
            if changes[turn] then changes[turn](wrk.headers) end
            turn = turn + 1
            return wrk.format()
        end";
    let expected = [
        "A: 1",
        "A: 2",
        "A: 2|B: 2",
        "B: 2",
        "C: 2",
        "C: 5",
        "C: 5",
        "C: 6",
        "D: x",
        "",
        "",
        "E: call1",
        "E: call2",
        "1: one",
        "1: one|2: two",
        "2: two",
    ];
    let mut source = load(script).sources().remove(0);
    for expected in expected {
        let (head, _) = parts(&next(&mut source));
        let headers: Vec<&str> =
            head[1..].iter().map(String::as_str).filter(|line| !line.starts_with("Host")).collect();
        assert_eq!(headers.join("|"), expected);
    }
}

#[test]
fn a_body_stays_for_all_methods() {
    let script = "
        local turn = 0
        function request()
            turn = turn + 1
            if turn == 2 then wrk.body = 'sticky' return wrk.format('PUT', '/') end
            if turn == 4 then wrk.body = nil end
            return wrk.format('GET', '/')
        end";
    let mut source = load(script).sources().remove(0);
    let bodies: Vec<String> = (0..3).map(|_| parts(&next(&mut source)).1).collect();
    assert_eq!(bodies, ["sticky", "sticky", ""]);
}

#[test]
fn queries_are_built_with_the_libraries_of_lua() {
    let script = "
        local bit = require('bit')
        local math = require('math')
        function request()
            local query = {}
            for i = 1, 3 do query[#query + 1] = string.format('k%d=%02x', i, bit.band(i * 100, 0xff)) end
            return wrk.format('GET', '/v0/entities?' .. table.concat(query, '&') .. '&m=' .. math.floor(2.5))
        end";
    assert_eq!(first_lines(script, 1), ["GET /v0/entities?k1=64&k2=c8&k3=2c&m=2 HTTP/1.1"]);
}

#[test]
fn bodies_may_contain_any_bytes() {
    let script =
        "function request() return wrk.format('PUT', '/', nil, '\\0\\255\\r\\n\\r\\n\\0') end";
    let mut source = load(script).sources().remove(0);
    let batch = source.next(0).expect("a request");
    let (head, body) = batch.bytes.split_at(batch.bytes.len() - 7);
    assert_eq!(body, b"\0\xff\r\n\r\n\0");
    let head = String::from_utf8_lossy(head);
    assert!(head.contains("\r\nContent-Length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(batch.requests.len(), 1);
}

#[test]
fn the_command_line_reaches_the_script() {
    let mut options = options(1);
    options.headers = vec![("X-Given".to_owned(), "a: b".to_owned())];
    options.args = vec!["one".to_owned(), "2".to_owned()];
    let script = "
        function init(args)
            wrk.path = '/' .. #args .. args[1] .. args[2] .. '?' .. args[0]
            assert(wrk.scheme == 'http' and wrk.host == '127.0.0.1' and wrk.port == '8080')
            assert(require('wrk') == wrk and wrk.threads == 1 and wrk.thread_id == 0)
        end";
    let request = next(&mut load_with(script, &options).expect("starts").sources()[0]);
    assert_request(
        &request,
        &[&format!("GET /2one2?{URL} HTTP/1.1"), "Host: 127.0.0.1:8080", "X-Given: a: b"],
        "",
    );
}

#[test]
fn a_given_host_is_kept() {
    let mut options = options(1);
    options.headers = vec![("Host".to_owned(), "example.com".to_owned())];
    let script = "function request() return wrk.format('GET', '/', {}) end";
    let request = next(&mut load_with(script, &options).expect("starts").sources()[0]);
    assert_eq!(request, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
}

#[test]
fn format_is_compiled_and_later_requests_are_right() {
    let script = "
        assert(jit.status())
        local n = 0
        function request()
            n = n + 1
            return wrk.format('PUT', '/v0/entity?id=' .. n, nil, n % 3 == 0 and 'long body' or nil)
        end";
    let mut source = load(script).sources().remove(0);
    for n in 2..5_000 {
        let request = next(&mut source);
        let (line, host) = (format!("PUT /v0/entity?id={n} HTTP/1.1"), "Host: 127.0.0.1:8080");
        match n % 3 {
            0 => assert_request(&request, &[&line, "Content-Length: 9", host], "long body"),
            _ => assert_request(&request, &[&line, host], ""),
        }
    }
}

#[test]
fn any_number_of_headers_is_sent() {
    let script = "
        local n = -1
        function request()
            n = n + 1
            local headers = { Host = 'a' }
            for i = 1, n do headers[string.format('X-%02d', i)] = i end
            return wrk.format('PUT', '/', headers, 'body')
        end";
    let mut source = load(script).sources().remove(0);
    for count in 1..40 {
        let mut head =
            vec!["PUT / HTTP/1.1".to_owned(), "Content-Length: 4".to_owned(), "Host: a".to_owned()];
        head.extend((1..=count).map(|n| format!("X-{n:02}: {n}")));
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        assert_request(&next(&mut source), &head, "body");
    }
}
