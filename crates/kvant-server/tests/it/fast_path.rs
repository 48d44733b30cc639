//! The fast path responds to plain requests as hyper would.

use crate::client::{Client, Response};
use crate::fixture::{Fixture, config};
use kvant_base::Consumer;
use kvant_server::ServerConfig;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Sends a request on a new connection, with a further header or none.
fn request_with(
    fixture: &Fixture,
    header: &str,
    method: &str,
    target: &str,
    body: &str,
) -> Response {
    let mut client = fixture.client();
    let length = match method {
        "PUT" => format!("Content-Length: {}\r\n", body.len()),
        _ => String::new(),
    };
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{length}{header}\r\n{body}"));
    let response = client.read_response(method);
    client.assert_goes_on();
    response
}

/// Sends a request plainly and with a header that only hyper accepts; checks that the responses are
/// the same, and returns the status.
#[track_caller]
fn request_both_ways(fixture: &Fixture, method: &str, target: &str, body: &str) -> u16 {
    let [plain, by_hyper] = ["", "TE: trailers\r\n"].map(|header| {
        let mut response = request_with(fixture, header, method, target, body);
        for (name, value) in &mut response.headers {
            if name == "date" {
                assert!(value.len() == 29 && value.ends_with(" GMT"), "{value}");
                value.clear();
            }
        }
        response
    });
    assert!(plain.header("date").is_some());
    assert_eq!(format!("{plain:?}"), format!("{by_hyper:?}"), "{method} {target}");
    plain.status
}

#[test]
fn plain_requests_get_the_same_responses_as_through_hyper() {
    let fixture = Fixture::new();
    let status = |method, target, body| request_both_ways(&fixture, method, target, body);
    assert_eq!(status("GET", "/v0/status", ""), 200);
    assert_eq!(status("GET", "/v0/status?x=y", ""), 200);
    assert_eq!(status("PUT", "/v0/entity?id=a", "value"), 201);
    assert_eq!(status("GET", "/v0/entity?id=a", ""), 200);
    assert_eq!(status("GET", "/v0/entity?id=%61&ack=1&from=1", ""), 200);
    assert_eq!(status("PUT", "/v0/entity?id=a&ttl=1", ""), 201);
    assert_eq!(status("GET", "/v0/entity?id=a", ""), 200);
    fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(status("GET", "/v0/entity?id=a", ""), 404);
    assert_eq!(status("DELETE", "/v0/entity?id=a", ""), 202);
    let long = "v".repeat(60_000);
    for value in ["x", &long[..8192], &long[..8193], &long] {
        assert_eq!(status("PUT", "/v0/entity?id=b", value), 201);
        assert_eq!(request_with(&fixture, "", "GET", "/v0/entity?id=b", "").body, value.as_bytes());
        assert_eq!(status("GET", "/v0/entity?id=b", ""), 200);
    }
    assert_eq!(status("GET", "/v0/entity", ""), 400);
    assert_eq!(status("GET", "/v0/entity?id=%zz", ""), 400);
    assert_eq!(status("PUT", "/v0/entity?id=a&ttl=0", "x"), 400);
    assert_eq!(status("GET", "/nowhere", ""), 400);
    assert_eq!(status("DELETE", "/v0/status", ""), 405);
    assert_eq!(fixture.request("GET", "/v0/stats", b"").status, 200);
}

#[test]
fn plain_requests_get_the_same_problems_as_through_hyper() {
    let fixture =
        Fixture::with(ServerConfig { queue_wait_max: Duration::from_millis(10), ..config() });
    let status = |method, target, body| request_both_ways(&fixture, method, target, body);
    let faults = &fixture.store.faults;
    *faults.damaged_key.lock().unwrap() = Some(b"damaged".to_vec());
    assert_eq!(status("GET", "/v0/entity?id=damaged", ""), 500);
    faults.disk_full.store(true, SeqCst);
    assert_eq!(status("PUT", "/v0/entity?id=a", "x"), 507);
    faults.disk_full.store(false, SeqCst);
    faults.stalled.store(true, SeqCst);
    assert_eq!(status("PUT", "/v0/entity?id=a", "x"), 503);
    fixture.store.end_stall();
    faults.completes_elsewhere.store(true, SeqCst);
    assert_eq!(status("PUT", "/v0/entity?id=a", "x"), 201);
    faults.fsync_fails.store(true, SeqCst);
    fixture.request("DELETE", "/v0/entity?id=a", b"").assert_problem(500, "outcome-unknown");
    assert_eq!(status("DELETE", "/v0/entity?id=a", ""), 500);
}

#[test]
fn before_the_store_is_open_requests_are_rejected_at_once() {
    let fixture = Fixture::recovering(config());
    assert_eq!(request_both_ways(&fixture, "GET", "/v0/status", ""), 200);
    assert_eq!(request_both_ways(&fixture, "GET", "/v0/entity?id=a", ""), 503);
}

/// Hyper's buffers, which have grown for a long body, receive a whole request with a key that is
/// longer than those of the fast path.
#[test]
fn a_key_that_is_too_long_is_refused_after_a_long_body_too() {
    let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
    let put = |key: &str, body: &str| {
        let bytes = body.len();
        format!(
            "PUT /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n\r\n{body}"
        )
    };
    let mut client = fixture.client();
    // Its head is known from now on.
    client.send(put("a", "short"));
    assert_eq!(client.read_response("PUT").status, 201);
    client.send(put("b", &"v".repeat(1 << 20)));
    assert_eq!(client.read_response("PUT").status, 201);
    client.send(put(&"k".repeat(20_000), "short"));
    client.read_response("PUT").assert_problem(414, "key-too-long");
}

/// Plain requests, then others, on one connection: no request is lost or served twice when
/// hyper takes over.
#[test]
fn a_connection_moves_to_hyper_with_all_received_bytes() {
    let fixture = Fixture::new();
    let get = "GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n";
    let put = "PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n";
    let value = "0123456789".repeat(2000);
    for cut in [1, 30, put.len() - 1, put.len(), put.len() + 10_000, put.len() + value.len()] {
        let mut client = fixture.client();
        client.assert_goes_on();
        client.send(get);
        client.read_response("GET");
        let all = format!("{put}{value}{get}{get}");
        client.send(&all[..cut]);
        std::thread::sleep(Duration::from_millis(5));
        client.send(&all[cut..]);
        assert_eq!(client.read_response("PUT").status, 201);
        for _ in 0..2 {
            assert_eq!(client.read_response("GET").body, value.as_bytes());
        }
        client.assert_goes_on();
    }
}

/// Hyper's buffers are counted, and go with it.
#[test]
fn a_connection_leaves_hyper_with_its_next_plain_request() {
    let fixture = Fixture::new();
    let has_buffers = || fixture.memory.used_bytes(Consumer::Connections) > 10_000;
    let mut client = fixture.client();
    let range = "GET /v0/entities?start=a HTTP/1.1\r\nHost: x\r\n\r\n";
    let get = "GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n";
    let put = |headers: &str, value: &str| {
        format!("PUT /v0/entity?id=b HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{value}")
    };
    let long = put("Content-Length: 20000", &"v".repeat(20_000));
    let chunked = put("Transfer-Encoding: chunked", "5\r\nvalue\r\n0\r\n\r\n");
    let odd = get.replace("\r\n\r\n", "\r\nTE: trailers\r\n\r\n");
    for by_hyper in [range, &odd, &long, &chunked] {
        client.send(by_hyper);
        client.read_response("GET");
        assert!(has_buffers());
        client.send(get);
        assert_eq!(client.read_response("GET").status, 404);
        assert!(!has_buffers());
        // Also in one piece, where hyper has them in its buffer.
        client.send(format!("{by_hyper}{get}{get}"));
        (0..3).for_each(|_| drop(client.read_response("GET")));
        assert!(has_buffers());
        client.send(get);
        assert_eq!(client.read_response("GET").status, 404);
        assert!(!has_buffers());
    }
}

/// The rest of a body, and of a head, may look like a plain request.
#[test]
fn what_belongs_to_a_request_of_hyper_is_not_served_as_one() {
    let fixture = Fixture::new();
    fixture.put("a", b"value");
    let get = "GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut client = fixture.client();
    let length = get.len();
    client.send(format!("PUT /v0/entity HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"));
    std::thread::sleep(Duration::from_millis(20));
    client.send(get);
    assert_eq!(client.read_response("PUT").status, 400);
    client.assert_goes_on();

    let by_hyper = "GET /v0/status HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n\r\n";
    let mut client = fixture.client();
    client.send(format!("{by_hyper}GET /v0/status HTTP/1.1\r\nHost: x\r\nA: "));
    assert_eq!(client.read_response("GET").status, 200);
    client.send(get);
    assert_eq!(client.read_response("GET").status, 400, "it has two hosts");
}

#[test]
fn a_slow_reader_gets_every_response() {
    let fixture = Fixture::new();
    let value = "v".repeat(50_000);
    fixture.put("a", value.as_bytes());
    let mut client = fixture.client();
    const COUNT: usize = 400;
    for _ in 0..COUNT {
        client.send("GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\n\r\n");
        // One by one, where the pieces allow it.
        std::thread::sleep(Duration::from_micros(300));
    }
    for _ in 0..COUNT {
        assert_eq!(client.read_response("GET").body, value.as_bytes());
    }
    client.assert_goes_on();
}

#[test]
fn a_client_may_close_its_side_before_it_reads() {
    let fixture = Fixture::new();
    let mut client: Client = fixture.client();
    client.send("GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n");
    client.shutdown_write();
    assert_eq!(client.read_response("GET").status, 200);
    assert!(client.is_closed());
}

/// A value that is too long for one write is not read again.
#[test]
fn a_long_value_is_read_once() {
    let fixture = Fixture::new();
    let value = "v".repeat(65_537);
    fixture.put("a", value.as_bytes());
    let mut client = fixture.client();
    for count in 1..=3 {
        assert_eq!(client.request("GET", "/v0/entity?id=a", b"").body, value.as_bytes());
        assert_eq!(fixture.store.reads.load(SeqCst), count);
    }
    assert_eq!(client.request("GET", "/v0/entity?id=b", b"").status, 404);
}
