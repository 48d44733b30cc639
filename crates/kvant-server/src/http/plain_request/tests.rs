use super::*;

fn is_refused(text: &str) {
    assert_eq!(PlainRequest::parse(text.as_bytes()), None, "{text:?}");
}

#[test]
fn plain_requests_are_parsed() {
    let parse = |text: &'static str| PlainRequest::parse(text.as_bytes()).expect(text);
    let get = parse(
        "GET /v0/status HTTP/1.1\r\nHost: x\r\nUser-Agent: y\r\nConnection: Keep-Alive\r\n\r\n",
    );
    assert_eq!((get.method, get.path, get.query), (Method::GET, "/v0/status", None));
    let put =
        parse("PUT /v0/entity?id=%20a&ttl=1 HTTP/1.1\r\nhost: x\r\nCONTENT-length: 3\r\n\r\nabc");
    assert_eq!((put.method, put.path), (Method::PUT, "/v0/entity"));
    assert_eq!((put.query, put.body), (Some("id=%20a&ttl=1"), &b"abc"[..]));
    let delete = parse("DELETE /v0/entity?id=a?b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!((delete.method, delete.query), (Method::DELETE, Some("id=a?b")));
}

#[test]
fn incomplete_and_pipelined_requests_are_not_plain() {
    let whole = "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
    (0..whole.len()).for_each(|end| is_refused(&whole[..end]));
    is_refused(&format!("{whole}G"));
    is_refused(&whole.repeat(2));
}

#[test]
fn headers_that_change_the_message_are_not_plain() {
    for headers in [
        "",
        "Host: x\r\nHost: x\r\n",
        "Host: x\r\nContent-Length: 0\r\n",
        "Host: x\r\nConnection: close\r\n",
        "Host: x\r\nConnection: keep-alive, upgrade\r\n",
        "Host: x\r\nTransfer-Encoding: chunked\r\n",
        "Host: x\r\ntransfer-encoding: identity\r\n",
        "Host: x\r\nExpect: 100-continue\r\n",
        "Host: x\r\nUpgrade: h2c\r\n",
        "Host: x\r\nTE: trailers\r\n",
        "Host : x\r\n",
        "Host: x\r\n folded\r\n",
    ] {
        is_refused(&format!("GET /v0/status HTTP/1.1\r\n{headers}\r\n"));
    }
    for length in ["", "+3", "3,3", " 0x3", "-3", "1234567", "3\r\nContent-Length: 3"] {
        is_refused(&format!(
            "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\nabc"
        ));
    }
    is_refused("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n");
    for target in [
        "*",
        "http://localhost/v0/status",
        "/v0/entity?id=a#b",
        "/v0/entity?id=\u{e4}",
        "/v0/entity?id=\"",
        "/\\",
    ] {
        is_refused(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    }
    for line in [
        "GET / HTTP/1.0",
        "POST / HTTP/1.1",
        "HEAD / HTTP/1.1",
        "get / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET /",
    ] {
        is_refused(&format!("{line}\r\nHost: x\r\n\r\n"));
    }
}

#[test]
fn many_headers_are_not_plain() {
    let request = |count| format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert!(PlainRequest::parse(request(HEADERS_MAX - 1).as_bytes()).is_some());
    is_refused(&request(HEADERS_MAX));
}
