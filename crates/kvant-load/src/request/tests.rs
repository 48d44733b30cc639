use super::*;

fn block(headers: &[(&str, &str)]) -> Result<HeaderBlock> {
    let target = Target::parse("http://example.com:8080/x").unwrap();
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    HeaderBlock::new(&target, &headers)
}

fn request(method: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> String {
    let mut out = Vec::new();
    append_request(&mut out, method, "/a?b", &block(headers).unwrap(), body);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_request_has_a_host_and_the_given_headers() {
    assert_eq!(request("GET", &[], None), "GET /a?b HTTP/1.1\r\nHost: example.com:8080\r\n\r\n");
    assert_eq!(
        request("GET", &[("Accept", "x"), ("HOST", "other")], None),
        "GET /a?b HTTP/1.1\r\nAccept: x\r\nHOST: other\r\n\r\n"
    );
}

#[test]
fn a_body_has_one_length() {
    assert_eq!(
        request("PUT", &[], Some(b"hello")),
        "PUT /a?b HTTP/1.1\r\nHost: example.com:8080\r\nContent-Length: 5\r\n\r\nhello"
    );
    assert_eq!(
        request("PUT", &[], Some(b"")),
        "PUT /a?b HTTP/1.1\r\nHost: example.com:8080\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(
        request("PUT", &[("content-length", "5")], Some(b"hello")),
        "PUT /a?b HTTP/1.1\r\nHost: example.com:8080\r\ncontent-length: 5\r\n\r\nhello"
    );
    assert_eq!(
        request("PUT", &[("Transfer-Encoding", "chunked")], Some(b"0\r\n\r\n")),
        "PUT /a?b HTTP/1.1\r\nHost: example.com:8080\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
}

#[test]
fn headers_and_methods_that_would_break_a_request_are_refused() {
    for (name, value) in
        [("", "x"), ("a b", "x"), ("a:", "x"), ("a", "x\r\nb: y"), ("a", "\n"), ("a", "\0")]
    {
        assert!(block(&[(name, value)]).is_err(), "{name:?}: {value:?}");
    }
    assert!(block(&[("X-Text", "sch\u{f6}n ; tab\t")]).is_ok());
    for method in ["", "GET ", "G\r\n"] {
        assert!(check_method(method).is_err(), "{method:?}");
    }
    assert!(check_method("M-SEARCH").is_ok());
}

#[test]
fn numbers_are_decimal() {
    for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX] {
        let mut out = Vec::new();
        append_decimal(&mut out, number);
        assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
    }
}

#[test]
fn a_buffer_with_room_is_not_reallocated() {
    let headers = block(&[]).unwrap();
    let mut out = Vec::with_capacity(1_000);
    let address = out.as_ptr();
    append_request(&mut out, "PUT", "/a", &headers, Some(b"value"));
    assert_eq!(out.as_ptr(), address);
    assert!(out.starts_with(b"PUT /a HTTP/1.1\r\n"));
}
