//! Calls between generator and script besides the text: number, kinds and targets of requests,
//! delays, and responses.

use super::{load, load_with, next, options, target};
use crate::source::ResponseView;
use std::time::Duration;

/// The names of the kinds of the next text's requests.
fn ops_of(script: &str, count: usize) -> Vec<Vec<String>> {
    let options = options(1);
    let mut sources = load_with(script, &options).expect("starts").sources();
    let mut ops = || {
        let batch = sources[0].next(0).expect("a request");
        batch.requests.iter().map(|request| options.ops.all()[request.op.index()].clone()).collect()
    };
    (0..count).map(|_| ops()).collect()
}

#[test]
fn pipelined_requests_are_separated() {
    let script = "
        init = function(args)
            local r = {}
            r[1] = wrk.format(nil, '/?foo')
            r[2] = wrk.format('HEAD', '/?bar')
            r[3] = wrk.format('PUT', '/?baz', nil, 'GET / HTTP/1.1\\r\\n\\r\\n')
            req = table.concat(r)
        end
        request = function() return req end";
    let options = options(1);
    let mut script = load_with(script, &options).expect("starts");
    let mut source = script.sources().remove(0);
    for _ in 0..2 {
        let batch = source.next(0).expect("a batch");
        let heads: Vec<bool> = batch.requests.iter().map(|request| request.is_head).collect();
        assert_eq!(heads, [false, true, false]);
        let ops: Vec<usize> = batch.requests.iter().map(|request| request.op.index()).collect();
        assert_eq!(
            ops.iter().map(|&op| options.ops.all()[op].clone()).collect::<Vec<_>>(),
            ["GET /", "HEAD /", "PUT /"]
        );
    }
}

#[test]
fn each_batch_counts_its_own_requests() {
    let script = "
        local n = 0
        function request()
            n = n + 1
            return string.rep('GET /' .. n .. ' HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n', n)
        end";
    let mut source = load(script).sources().remove(0);
    let counts: Vec<usize> =
        (0..3).map(|_| source.next(0).expect("a batch").requests.len()).collect();
    assert_eq!(counts, [2, 3, 4]);
}

#[test]
fn kinds_are_methods_with_classes_of_paths_or_tags() {
    let script = "
        local made = {
            function() return wrk.format('GET', '/v0/entity?id=1') end,
            function() return wrk.format('GET', '/v0/entity?id=2') end,
            function() return wrk.format('PUT', '/users/17/posts/18') end,
            function() return wrk.format('PUT', '/users/20/posts/21') end,
            function() wrk.tag = 'hot' return wrk.format('GET', '/v0/entity?id=3') end,
            function() return wrk.format('HEAD', '/v0/entity?id=3') end,
            function() wrk.tag = nil return wrk.format('GET', '/v0/entity?id=3') end,
        }
        local n = 0
        function request() n = n + 1 return (made[n - 1] or made[1])() end";
    let expected = [
        "GET /v0/entity",
        "GET /v0/entity",
        "PUT /users/:id/posts/:id",
        "PUT /users/:id/posts/:id",
        "hot",
        "hot",
        "GET /v0/entity",
    ];
    assert_eq!(ops_of(script, expected.len()), expected.map(|op| vec![op.to_owned()]));
}

#[test]
fn a_tagged_head_request_is_recognised() {
    let mut source = load("wrk.tag = 'x' wrk.method = 'HEAD'").sources().remove(0);
    assert!(source.next(0).expect("a request").requests[0].is_head);
}

#[test]
fn requests_follow_the_target() {
    let mut options = options(1);
    options.targets = vec![target(8080, "/a"), target(9090, "/b")];
    for script in [
        "",
        "function request() return wrk.format() end",
        "function request() return wrk.request() end",
    ] {
        let mut source = load_with(script, &options).expect("starts").sources().remove(0);
        for (index, expected) in [
            (0, "GET /a HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"),
            (1, "GET /b HTTP/1.1\r\nHost: 127.0.0.1:9090\r\n\r\n"),
        ]
        .into_iter()
        .cycle()
        .take(5)
        {
            let batch = source.next(index).expect("a request");
            assert_eq!(String::from_utf8_lossy(batch.bytes), expected, "by {script:?}");
        }
    }
}

#[test]
fn responses_are_passed_to_the_script() {
    let script = "
        function request() return wrk.format('GET', '/' .. (seen or 'nothing')) end
        function response(status, headers, body)
            local count = 0
            for name, value in pairs(headers) do count = count + 1 end
            seen = status .. '/' .. headers['X-Token'] .. '/' .. #body .. '/' .. type(headers['x-token']) .. '/' .. count
        end";
    let mut source = load(script).sources().remove(0);
    assert!(source.observes());
    let mut show = |headers: &[(&str, &[u8])], body: &[u8]| {
        source.observe(&ResponseView { status: 201, headers, body }).expect("looks at it");
        next(&mut source).split(' ').nth(1).map(str::to_owned).expect("a path")
    };
    assert_eq!(
        show(&[("X-Token", b"first"), ("Other", b""), ("X-Token", b"last")], b"abc"),
        "/201/last/3/nil/2"
    );
    // Headers and bodies that are not UTF-8.
    assert_eq!(
        show(&[("X-Token", b"first"), ("Other", b"\xff"), ("X-Token", b"last")], b""),
        "/201/last/0/nil/2"
    );
    assert_eq!(show(&[("X-Token", b"t")], b"\0\xfe!"), "/201/t/3/nil/1");
    // More headers than the fast path takes.
    let names: Vec<String> = (0..20).map(|n| format!("X-{n}")).collect();
    for count in 0..20 {
        let mut headers: Vec<(&str, &[u8])> =
            names[..count].iter().map(|name| (name.as_str(), &b"v"[..])).collect();
        headers.push(("X-Token", b"end"));
        assert_eq!(show(&headers, b"1"), format!("/201/end/1/nil/{}", count + 1));
    }
    assert!(!load("").sources()[0].observes());
}

#[test]
fn delay_is_in_milliseconds() {
    let mut source =
        load("local n = -1 function delay() n = n + 1 return ({[0] = 0, 1.5, -7, 0/0, '20', 1/0})[n] end")
            .sources()
            .remove(0);
    assert!(source.delays());
    let mut delays = Vec::new();
    for _ in 0..6 {
        delays.push(source.delay().expect("a delay"));
    }
    let expected_ms = [0.0, 1.5, 0.0, 0.0, 20.0, 86_400_000.0];
    assert_eq!(delays, expected_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)));
    assert!(!load("").sources()[0].delays());
}
