//! Request bodies: framing, limits, memory.

use crate::fixture::{Fixture, NEVER, config};
use kvant_base::Consumer;
use kvant_server::ServerConfig;
use std::time::Duration;

const LIMIT: usize = 100_000;

fn small_values() -> Fixture {
    Fixture::with(ServerConfig { value_bytes_max: LIMIT as u64, ..config() })
}

#[test]
fn chunked_bodies() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let bodies = [
        ("0\r\n\r\n", ""),
        ("3\r\nabc\r\n0\r\n\r\n", "abc"),
        ("3;name=value\r\nabc\r\n0\r\n\r\n", "abc"),
        ("1\r\na\r\n2\r\nbc\r\n0\r\nTrailer: ignored\r\n\r\n", "abc"),
        ("0003\r\nabc\r\n000\r\n\r\n", "abc"),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
    ];
    for (body, value) in bodies {
        client.send(format!(
            "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        ));
        assert_eq!(client.read_response("PUT").status, 201, "{body:?}");
        assert_eq!(
            client.request("GET", "/v0/entity?id=k", b"").body,
            value.as_bytes(),
            "{body:?}"
        );
    }
}

#[test]
fn a_long_chunked_body() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send("PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut value = Vec::new();
    for i in 0..300_u32 {
        let chunk = vec![i as u8; (i as usize * 37) % 9000 + 1];
        client.send(format!("{:x}\r\n", chunk.len()));
        client.send(&chunk);
        client.send("\r\n");
        value.extend_from_slice(&chunk);
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.read_response("PUT").status, 201);
    assert!(client.request("GET", "/v0/entity?id=k", b"").body == value);
}

const MALFORMED_CHUNKS: [&str; 6] = [
    "x\r\nabc\r\n0\r\n\r\n",
    "-1\r\n",
    "3\r\nabcd\r\n0\r\n\r\n",
    "3\nabc\n0\n\n",
    "fffffffffffffffff\r\n",
    "\r\n\r\n",
];

/// The ends of heads with bodies that break off.
const BROKEN_OFF: [&str; 3] = [
    "Content-Length: 10\r\n\r\nabc",
    "Content-Length: 100000\r\n\r\nabc",
    "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
];

/// Requests whose bodies mean nothing.
const WITHOUT_BODY: [&str; 2] = ["DELETE /v0/entity?id=k", "POST /v0/admin/flush"];

#[test]
fn malformed_chunks_write_nothing() {
    let fixture = Fixture::new();
    for body in MALFORMED_CHUNKS {
        let mut client = fixture.client();
        client.send(format!(
            "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        ));
        let response = client.read_response("PUT");
        assert!(response.status == 400 && response.closes(), "{body:?}: {response:?}");
        assert!(client.is_closed(), "{body:?}");
        assert_eq!(fixture.request("GET", "/v0/entity?id=k", b"").status, 404, "{body:?}");
    }
}

#[test]
fn a_body_that_breaks_off_writes_nothing() {
    let fixture = Fixture::new();
    for head in BROKEN_OFF {
        let mut client = fixture.client();
        client.send(format!("PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n{head}"));
        client.shutdown_write();
        assert!(client.try_read_response("PUT").is_none_or(|response| response.status == 400));
        assert_eq!(fixture.request("GET", "/v0/entity?id=k", b"").status, 404, "{head:?}");
    }
    assert_eq!(fixture.memory.used_bytes(Consumer::Requests), 0);
}

#[test]
fn requests_without_a_body_do_nothing_if_they_come_with_malformed_chunks() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    for line in WITHOUT_BODY {
        for body in MALFORMED_CHUNKS {
            let mut client = fixture.client();
            client.send(format!(
                "{line} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
            ));
            let response = client.read_response("DELETE");
            response.assert_problem(400, "malformed-request");
            assert!(response.closes() && client.is_closed(), "{line} {body:?}");
        }
    }
    assert!(fixture.store.has_key(b"k"));
}

#[test]
fn requests_without_a_body_do_nothing_if_they_come_with_one_that_breaks_off() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    for line in WITHOUT_BODY {
        for head in BROKEN_OFF {
            let mut client = fixture.client();
            client.send(format!("{line} HTTP/1.1\r\nHost: x\r\n{head}"));
            client.shutdown_write();
            client.read_response("DELETE").assert_problem(400, "malformed-request");
            assert!(client.is_closed(), "{line} {head:?}");
        }
    }
    assert!(fixture.store.has_key(b"k"));
}

#[test]
fn expect_continue() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for length in [2, 50_000] {
        let head = format!(
            "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        );
        client.send(&head);
        assert_eq!(client.read_response("PUT").status, 100);
        client.send("v".repeat(length));
        assert_eq!(client.read_response("PUT").status, 201);
        assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body.len(), length);
    }
    // A client that does not wait.
    client.send(
        "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\nvw",
    );
    let first = client.read_response("PUT");
    let response = if first.status == 100 { client.read_response("PUT") } else { first };
    assert_eq!(response.status, 201);
    // HTTP/1.0 knows no 100.
    client.send(
        "PUT /v0/entity?id=k HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nvw",
    );
    assert_eq!(client.read_response("PUT").status, 201);
}

#[test]
fn a_refused_request_that_expects_continue_gets_its_response_at_once_without_100() {
    let fixture = small_values();
    let rows = [
        ("PUT /v0/entity?id=k", LIMIT + 1, 413),
        ("PUT /v0/entity?id=k", 1 << 40, 413),
        ("PUT /v0/entity?id=", 10, 400),
        ("PUT /v0/nowhere", 10, 400),
        ("POST /v0/entity?id=k", 10, 405),
        ("GET /v0/status", 10, 200),
    ];
    for (line, length, status) in rows {
        let mut client = fixture.client();
        client.send(format!(
            "{line} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        ));
        let response = client.read_response("PUT");
        assert!(response.status == status && response.closes(), "{line}: {response:?}");
    }
}

#[test]
fn a_value_over_the_limit_is_413_and_the_connection_goes_on() {
    let fixture = small_values();
    let mut client = fixture.client();
    for over in [1, 1000, 5_000_000] {
        client
            .request("PUT", "/v0/entity?id=k", &vec![b'v'; LIMIT + over])
            .assert_problem(413, "value-too-long");
        client.assert_goes_on();
        let chunk = "v".repeat(LIMIT + over);
        let head = "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}{:x}\r\n{chunk}\r\n0\r\n\r\n", chunk.len()));
        client.read_response("PUT").assert_problem(413, "value-too-long");
        client.assert_goes_on();
    }
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").status, 404, "nothing was written");
    assert_eq!(
        client.request("PUT", "/v0/entity?id=k", &vec![b'v'; LIMIT]).status,
        201,
        "the limit itself is accepted"
    );
}

#[test]
fn a_value_far_over_the_limit_is_413_and_the_connection_closes() {
    let fixture = small_values();
    let far = LIMIT + (16 << 20) + 1;
    let mut client = fixture.client();
    client
        .send(format!("PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: {far}\r\n\r\n"));
    let response = client.read_response("PUT");
    response.assert_problem(413, "value-too-long");
    assert!(response.closes());

    // Chunks: the length is not known in advance.
    let mut client = fixture.client();
    client.send("PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("100000\r\n{}\r\n", "v".repeat(1 << 20));
    let sent = (0..20).take_while(|_| client.send_if_open(&chunk)).count();
    assert!(sent >= 16, "{sent} MiB of 16 were taken");
    let response = client.read_response("PUT");
    response.assert_problem(413, "value-too-long");
    assert!(response.closes());
}

#[test]
fn bodies_of_requests_without_one_are_discarded() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    let mut client = fixture.client();
    for length in [1, 20_000, 1_000_000] {
        let body = vec![b'G'; length];
        assert_eq!(client.request("GET", "/v0/entity?id=k", &body).body, b"v");
        assert_eq!(client.request("HEAD", "/v0/entity?id=k", &body).status, 200);
        assert_eq!(client.request("DELETE", "/v0/entity?id=none", &body).status, 202);
        assert_eq!(client.request("GET", "/v0/entities?start=k", &body).body, b"k\nv");
        client.request("PUT", "/v0/entity?id=", &body).assert_problem(400, "bad-query");
    }
    client.assert_goes_on();
}

#[test]
fn a_body_without_memory_waits_unread_and_is_written_when_there_is_some() {
    let fixture = Fixture::new();
    let taken = fixture.memory.reserve(Consumer::Requests, 60 << 20);
    let mut client = fixture.client();
    let value = vec![b'v'; 10 << 20];
    let head = format!(
        "PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        value.len()
    );
    client.send(head);
    client.stream().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut byte = [0];
    let early = std::io::Read::read(&mut client.stream(), &mut byte);
    assert!(early.is_err(), "the body was requested without memory for it: {early:?}");
    client.stream().set_read_timeout(Some(NEVER)).unwrap();
    drop(taken);
    // A request that releases memory wakes the one that waits.
    fixture.put("other", &vec![b'v'; 20_000]);
    assert_eq!(client.read_response("PUT").status, 100);
    client.send(&value);
    assert_eq!(client.read_response("PUT").status, 201);
    assert_eq!(fixture.memory.used_bytes(Consumer::Requests), 0);
}

#[test]
fn a_body_needs_no_memory_for_larger_buffers() {
    let fixture = Fixture::new();
    let used_bytes = || fixture.memory.used_bytes(Consumer::Connections);
    let put = |key: &str| {
        let mut client = fixture.client();
        let value = vec![b'v'; 1_000_000];
        let mut body = format!(
            "PUT /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        .into_bytes();
        for part in value.chunks(100_000) {
            body.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            body.extend_from_slice(part);
            body.extend_from_slice(b"\r\n");
        }
        fixture.wait_for_receipt(body.len() as u64, || client.send(&body));
        let most_bytes = used_bytes();
        client.send("0\r\n\r\n");
        assert_eq!(client.read_response("PUT").status, 201);
        assert!(client.request("GET", &format!("/v0/entity?id={key}"), b"").body == value);
        most_bytes
    };
    let with_room = put("a");
    assert!(with_room >= 128 << 10, "buffers that grow are counted: {with_room}");
    let taken = fixture.memory.reserve(Consumer::Connections, 64 << 20);
    let without = put("b") - taken.bytes();
    assert!(without < 128 << 10, "{without}");
}

#[test]
fn a_body_that_finds_no_memory_in_time_is_503_and_nothing_is_written() {
    let fixture =
        Fixture::with(ServerConfig { queue_wait_max: Duration::from_millis(1), ..config() });
    let _taken = fixture.memory.reserve(Consumer::Requests, 1 << 40);
    let mut client = fixture.client();
    client.request("PUT", "/v0/entity?id=k", &[b'v'; 100_000]).assert_problem(503, "no-memory");
    assert_eq!(
        client.request("PUT", "/v0/entity?id=small", b"v").status,
        201,
        "short values need none"
    );
    client.request("GET", "/v0/entities?start=a", b"").assert_problem(503, "no-memory");
    client.request("GET", "/v0/entity?id=k", b"").assert_problem(404, "not-found");
}
