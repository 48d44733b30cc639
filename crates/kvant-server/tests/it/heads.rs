//! Heads that no client library would send, as raw bytes.

use crate::client::Client;
use crate::fixture::Fixture;
use kvant_base::Consumer;

/// Sends `head` and checks that it gets one response with `status` and that the connection
/// is closed.
#[track_caller]
fn assert_refused(fixture: &Fixture, head: &str, status: u16) {
    let mut client = fixture.client();
    client.send(head);
    let shown: String = head.chars().take(100).collect();
    let response =
        client.try_read_response("GET").unwrap_or_else(|| panic!("no response to {shown:?}"));
    assert_eq!(response.status, status, "{shown:?}: {response:?}");
    assert!(response.closes(), "{shown:?}: {response:?}");
    assert!(client.is_closed(), "{shown:?}");
}

#[test]
fn malformed_heads_are_400_and_close() {
    let fixture = Fixture::new();
    let put = "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n";
    let get = "GET /v0/status HTTP/1.1\r\nHost: x\r\n";
    let heads = [
        // Lengths.
        format!("{put}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        format!("{put}Content-Length: 1, 2\r\n\r\nab"),
        format!("{put}Content-Length: -1\r\n\r\n"),
        format!("{put}Content-Length: +1\r\n\r\na"),
        format!("{put}Content-Length: 0x1\r\n\r\na"),
        format!("{put}Content-Length: 1 1\r\n\r\na"),
        format!("{put}Content-Length: x\r\n\r\n"),
        format!("{put}Content-Length:\r\n\r\n"),
        format!("{put}Content-Length: 99999999999999999999999\r\n\r\n"),
        // Bare CR, obs-fold, space before the colon, control characters.
        format!("{get}X: a\rb\r\n\r\n"),
        format!("{get}X: a\r\r\n\r\n"),
        "GET /v0/status HTTP/1.1\rHost: x\r\n\r\n".to_string(),
        "GET /v0/sta\rtus HTTP/1.1\r\nHost: x\r\n\r\n".to_string(),
        "\rGET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n".to_string(),
        format!("{get}X: a\r\n b\r\n\r\n"),
        format!("{get}X: a\r\n\tb\r\n\r\n"),
        "GET /v0/status HTTP/1.1\r\n Host: x\r\n\r\n".to_string(),
        format!("{get}X : a\r\n\r\n"),
        format!("{get}X\t: a\r\n\r\n"),
        "GET /v0/status HTTP/1.1\r\nHost : x\r\n\r\n".to_string(),
        format!("{get}X\0Y: a\r\n\r\n"),
        format!("{get}X: a\0b\r\n\r\n"),
        format!("{get}no colon\r\n\r\n"),
        format!("{get}: no name\r\n\r\n"),
        // Transfer codings.
        format!("{put}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        format!("{put}Transfer-Encoding: gzip\r\n\r\n"),
        format!("{put}Transfer-Encoding: identity\r\n\r\n"),
        format!("{put}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        format!("{put}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        format!("{put}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        format!("{put}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"),
        format!("{put}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{put}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{put}Transfer-Encoding:\r\n\r\n"),
        "PUT /v0/entity?id=k HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_string(),
        // Host.
        "GET /v0/status HTTP/1.1\r\n\r\n".to_string(),
        "GET /v0/status HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n".to_string(),
        "GET /v0/status HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n".to_string(),
        // Request lines.
        "GET  /v0/status HTTP/1.1\r\nHost: x\r\n\r\n".to_string(),
        "GET /v0/status HTTP/1.1 \r\nHost: x\r\n\r\n".to_string(),
        "GET /v0/status HTTP/2.0\r\nHost: x\r\n\r\n".to_string(),
        "GET /v0/status\r\nHost: x\r\n\r\n".to_string(),
        "GE(T /v0/status HTTP/1.1\r\nHost: x\r\n\r\n".to_string(),
        "GET /v0/entity?id=a b HTTP/1.1\r\nHost: x\r\n\r\n".to_string(),
        "\u{1}\u{2}\u{3}\u{4}\u{5}\r\n\r\n".to_string(),
    ];
    for head in heads {
        assert_refused(&fixture, &head, 400);
    }
    fixture.request("GET", "/v0/entity?id=k", b"").assert_problem(404, "not-found");
}

#[test]
fn unusual_but_valid_heads_are_served() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let put = "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n";
    let heads = [
        format!("{put}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
        format!("{put}Content-Length:    001   \r\n\r\na"),
        format!("{put}Transfer-Encoding: CHUNKED\r\n\r\n1\r\na\r\n0\r\n\r\n"),
        "PUT /v0/entity?id=k HTTP/1.1\nHost: x\nContent-Length: 1\n\na".to_string(),
        "\r\n\r\nPUT /v0/entity?id=k HTTP/1.1\r\nHost:\r\nContent-Length: 1\r\n\r\na".to_string(),
        format!("{put}X:\r\nY:y\r\nContent-Length: 1\r\n\r\na"),
    ];
    for head in heads {
        client.send(&head);
        assert_eq!(client.read_response("PUT").status, 201, "{head:?}");
        assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"a", "{head:?}");
    }
}

#[test]
fn a_transfer_coding_overrides_a_length_and_the_connection_closes() {
    let fixture = Fixture::new();
    let body = "3\r\nabc\r\n0\r\n\r\n";
    for lengths in [
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 1",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
    ] {
        let mut client = fixture.client();
        let smuggled = "GET /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n\r\n";
        client.send(format!(
            "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n{lengths}\r\n\r\n{body}{smuggled}"
        ));
        let response = client.read_response("PUT");
        assert!(response.status == 201 && response.closes(), "{lengths:?}: {response:?}");
        assert!(client.is_closed(), "{lengths:?}");
        assert_eq!(fixture.request("GET", "/v0/entity?id=k", b"").body, b"abc");
    }
}

/// A target of exactly `len` bytes whose key is short.
fn target(len: usize) -> String {
    let start = "/v0/entity?id=k&padding=";
    format!("{start}{}", "p".repeat(len - start.len()))
}

#[test]
fn a_target_over_65534_bytes_is_414() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    // Without the Host header, the longest target fits into the 64 KiB that a head may have.
    let mut client = fixture.client();
    client.send(format!("GET {} HTTP/1.0\r\n\r\n", target(65_534)));
    assert_eq!(client.read_response("GET").status, 200);
    for len in [65_535, 65_536, 70_000, 100_000, 300_000, 400_000, 500_000, 2_000_000] {
        let mut client = fixture.client();
        client.send_if_open(format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target(len)));
        let response = client.read_response("GET");
        assert_eq!((response.status, response.body.len()), (414, 0), "{len}");
        assert!(client.is_closed(), "{len}");
    }
}

/// A request whose target, header names and header values have `len` bytes together.
fn head_of(len: usize) -> String {
    let known = "/v0/status".len() + "Host".len() + "x".len() + "A".len() + "B".len();
    let half = (len - known) / 2;
    let (a, b) = ("a".repeat(half), "b".repeat(len - known - half));
    format!("GET /v0/status HTTP/1.1\r\nHost: x\r\nA:   {a}\r\nB: {b}\r\n\r\n")
}

#[test]
fn a_head_over_64_kib_is_431() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send(head_of(65_536));
    assert_eq!(client.read_response("GET").status, 200, "64 KiB is not over it");
    for len in [65_537, 66_000, 200_000] {
        assert_refused(&fixture, &head_of(len), 431);
    }
    for len in [500_000, 3_000_000] {
        let mut client = fixture.client();
        client.send_if_open(head_of(len));
        assert_eq!(client.read_response("GET").status, 431, "{len}");
        assert!(client.is_closed(), "{len}");
    }
}

/// The start of a head: `count` headers of 8,000 bytes.
fn unfinished_head(count: usize) -> String {
    let headers: String =
        (0..count).map(|i| format!("H{i:02}: {}\r\n", "v".repeat(7_993))).collect();
    format!("GET /v0/status HTTP/1.1\r\nHost: x\r\n{headers}")
}

#[test]
fn a_head_that_does_not_end_is_431_soon_after_64_kib() {
    let fixture = Fixture::new();
    // Also behind a request on the same connection.
    for before in ["", "GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let mut client = fixture.client();
        client.send(format!("{before}{}", unfinished_head(10)));
        if !before.is_empty() {
            assert_eq!(client.read_response("GET").status, 200);
        }
        let response = client.read_response("GET");
        assert!(response.status == 431 && response.closes(), "{response:?}");
        assert!(client.is_closed());
    }
}

#[test]
fn memory_of_buffered_heads_is_reserved() {
    const COUNT: u64 = 20;
    let fixture = Fixture::new();
    let head = unfinished_head(5);
    let used_bytes = || fixture.memory.used_bytes(Consumer::Connections);
    let mut clients: Vec<Client> = (0..COUNT).map(|_| fixture.client()).collect();
    fixture.wait_for_receipt(COUNT * head.len() as u64, || {
        clients.iter_mut().for_each(|client| client.send(&head));
    });
    assert!(used_bytes() >= COUNT * head.len() as u64, "{}", used_bytes());
    for client in &mut clients {
        client.send("\r\n");
        assert_eq!(client.read_response("GET").status, 200);
    }
    drop(clients);
    while used_bytes() > 10_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_head_that_finds_no_memory_is_503() {
    let fixture = Fixture::new();
    let mut began = fixture.client();
    let head = unfinished_head(1);
    fixture.wait_for_receipt(head.len() as u64, || began.send(&head));
    let taken = fixture.memory.reserve(Consumer::Connections, 127 << 20);
    let mut plain = fixture.client();
    plain.assert_goes_on();
    // A connection that has buffers already, and one that has none.
    let mut clients = [began, fixture.client()];
    for client in &mut clients {
        let _more = fixture.memory.reserve(Consumer::Connections, 1 << 20);
        client.send_if_open(unfinished_head(3));
        let response = client.read_response("GET");
        assert!(response.status == 503 && response.closes(), "{response:?}");
        assert_eq!(response.header("retry-after"), Some("1"));
        assert!(client.is_closed());
    }
    plain.assert_goes_on();
    drop(taken);
    let mut client = fixture.client();
    client.send(unfinished_head(3) + "\r\n");
    assert_eq!(client.read_response("GET").status, 200);
}

#[test]
fn more_than_100_headers_are_431() {
    let fixture = Fixture::new();
    let head = |count: usize| {
        let rest: String = (1..count).map(|i| format!("H{i}: v\r\n")).collect();
        format!("GET /v0/status HTTP/1.1\r\nHost: x\r\n{rest}\r\n")
    };
    let mut client = fixture.client();
    client.send(head(100));
    assert_eq!(client.read_response("GET").status, 200);
    assert_refused(&fixture, &head(101), 431);
    assert_refused(&fixture, &head(500), 431);
}

#[test]
fn a_head_that_comes_byte_by_byte() {
    let fixture = Fixture::new();
    let mut client: Client = fixture.client();
    for byte in b"PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab" {
        client.send([*byte]);
    }
    assert_eq!(client.read_response("PUT").status, 201);
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"ab");
}

#[test]
fn a_connection_that_ends_within_a_head_gets_no_response() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send("GET /v0/sta");
    client.shutdown_write();
    assert!(client.is_closed());
}

#[test]
fn the_greatest_lengths_are_413() {
    let fixture = Fixture::new();
    for length in [u64::MAX, u64::MAX - 1, u64::MAX - 2, 1 << 60] {
        for (before, after) in
            [("", ""), ("TE: trailers\r\n", ""), ("", "Expect: 100-continue\r\n")]
        {
            let head = format!(
                "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n{before}Content-Length: {length}\r\n{after}\r\n"
            );
            assert_refused(&fixture, &head, 413);
        }
    }
    // On a connection that hyper has already.
    let mut client = fixture.client();
    client.send("GET /v0/status HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n\r\n");
    assert_eq!(client.read_response("GET").status, 200);
    client.send(format!(
        "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\ncontent-length:{}\r\n\r\n",
        u64::MAX
    ));
    assert_eq!(client.read_response("PUT").status, 413);
    assert!(client.is_closed());
    // Such a length in a body is not a header.
    let body = format!("\r\ncontent-length: {}\r\n", u64::MAX);
    assert_eq!(fixture.request("PUT", "/v0/entity?id=k", body.as_bytes()).status, 201);
}

/// However the bytes arrive: a request and the next head may come in one piece.
#[test]
fn refusals_of_a_later_head_do_not_depend_on_the_pieces_in_which_it_comes() {
    let fixture = Fixture::new();
    let long_target = format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target(65_600));
    let huge_length = format!(
        "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\nbody",
        u64::MAX
    );
    let many_headers =
        format!("GET /v0/status HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(100));
    let long_head = head_of(80_000);
    for (head, status) in
        [(long_target, 414), (huge_length, 413), (many_headers, 431), (long_head, 431)]
    {
        for header in ["TX", "TE"] {
            let first = format!("GET /v0/status HTTP/1.1\r\nHost: x\r\n{header}: trailers\r\n\r\n");
            let both = format!("{first}{head}");
            for cut in [first.len(), both.len(), 10, first.len() + 10, first.len() + 60] {
                let mut client = fixture.client();
                client.send(&both[..cut]);
                std::thread::sleep(std::time::Duration::from_millis(5));
                client.send_if_open(&both[cut..]);
                assert_eq!(client.read_response("GET").status, 200, "{header} {cut}");
                let refusal = client.read_response("GET");
                assert_eq!(refusal.status, status, "{header} {cut}");
                assert!(refusal.closes() && client.is_closed(), "{header} {cut}");
            }
        }
    }
}

#[test]
fn http_2_without_negotiation_is_400() {
    let fixture = Fixture::new();
    const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_refused(&fixture, PREFACE, 400);
    // With the first frame, SETTINGS, behind it.
    assert_refused(&fixture, &format!("{PREFACE}\0\0\0\x04\0\0\0\0\0"), 400);
    let mut client = fixture.client();
    for byte in PREFACE.bytes() {
        // The last bytes may come after the refusal.
        client.send_if_open([byte]);
    }
    assert_eq!(client.read_response("GET").status, 400);
}

#[test]
fn a_malformed_host_is_400() {
    let fixture = Fixture::new();
    for host in
        ["a b/c@", "a b", "user@localhost", "localhost/", "localhost:x", "[::1", "\u{e4}", "a,b:c"]
    {
        for version in ["1.1", "1.0"] {
            let head = format!("GET /v0/status HTTP/{version}\r\nHost: {host}\r\n\r\n");
            assert_refused(&fixture, &head, 400);
        }
    }
}
