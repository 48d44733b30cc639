//! Where the time of requests goes, as `/v0/stats` and `/v0/slow` show it.

use crate::client::Client;
use crate::fixture::{Fixture, config};
use kvant_base::Consumer;
use kvant_server::{DispatchMode, ServerConfig};
use serde_json::Value;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

const PHASES: [&str; 6] = ["selector", "body", "queue", "storage", "answer", "total"];

/// How many requests of an operation have been recorded; all phases must agree, if not at once.
fn recorded(client: &mut Client, operation: &str) -> u64 {
    let start = Instant::now();
    loop {
        let latency = client.request("GET", "/v0/stats", b"").json()["latency"][operation].take();
        let counts = PHASES.map(|phase| latency[phase]["count"].as_u64().unwrap_or(0));
        if counts.iter().all(|count| *count == counts[0]) {
            return counts[0];
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{latency}");
    }
}

/// A request is recorded just after its response was sent.
fn wait_until_recorded(client: &mut Client, operation: &str, count: u64) {
    while recorded(client, operation) < count {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(recorded(client, operation), count, "{operation}");
}

#[test]
fn every_request_is_recorded_once_on_either_path() {
    let fixture = Fixture::new();
    // One client stays on the fast path, the other uses hyper from the first request.
    let (mut plain, mut other) = (fixture.client(), fixture.client());
    assert_eq!(other.request("HEAD", "/v0/status", b"").status, 200);
    for client in [&mut plain, &mut other] {
        assert_eq!(client.request("GET", "/v0/status", b"").status, 200);
        assert_eq!(client.request("PUT", "/v0/entity?id=k", b"v").status, 201);
        assert_eq!(client.request("GET", "/v0/entity?id=k", b"").status, 200);
        assert_eq!(client.request("DELETE", "/v0/entity?id=k", b"").status, 202);
        assert_eq!(client.request("GET", "/v0/entity?id=k", b"").status, 404);
    }
    // In pieces and pipelined.
    let put = |key: &str| {
        format!("PUT /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    };
    other.send(format!("{}1\r\na\r\n0\r\n\r\n{}0\r\n\r\n", put("a"), put("b")));
    assert_eq!(other.read_response("PUT").status, 201);
    assert_eq!(other.read_response("PUT").status, 201);
    // A long value, and a range of many pieces.
    let long = vec![b'v'; 200_000];
    assert_eq!(other.request("PUT", "/v0/entity?id=c", &long).status, 201);
    assert_eq!(plain.request("GET", "/v0/entity?id=c", b"").body.len(), long.len());
    assert_eq!(plain.request("GET", "/v0/entities?start=a", b"").chunks.len(), 3);
    let mut operator = fixture.client();
    for (operation, count) in [("status", 3), ("put", 5), ("get", 5), ("delete", 2), ("range", 1)] {
        wait_until_recorded(&mut operator, operation, count);
    }
}

/// The slowest request of an operation.
fn slowest(client: &mut Client, operation: &str) -> Value {
    client.request("GET", &format!("/v0/slow?limit=1&operation={operation}"), b"").json()[0].take()
}

#[test]
fn a_write_that_waited_for_a_stall_names_it() {
    let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
    for (count, way) in [(1, "plain"), (2, "hyper")] {
        fixture.store.faults.stalled.store(true, SeqCst);
        let mut writer = fixture.client();
        if way == "hyper" {
            assert_eq!(writer.request("HEAD", "/v0/status", b"").status, 200);
        }
        writer.send_request("PUT", &format!("/v0/entity?id={way}"), b"value");
        let mut operator = fixture.client();
        while operator.request("GET", "/v0/stats", b"").json()["server"]["write_stalls"] != count {
            std::thread::sleep(Duration::from_millis(1));
        }
        // By then the selector that serves this has noted the reason.
        assert_eq!(operator.request("GET", "/v0/status", b"").status, 200);
        fixture.clock.advance(Duration::from_secs(3));
        fixture.store.end_stall();
        assert_eq!(writer.read_response("PUT").status, 201);
        wait_until_recorded(&mut operator, "put", count);
        let slow = slowest(&mut operator, "put");
        assert_eq!(
            (slow["operation"].as_str(), slow["status"].as_u64(), slow["stall"].as_str()),
            (Some("put"), Some(201), Some("test")),
            "{way}: {slow}"
        );
        assert_eq!(
            (slow["key"].as_str(), slow["key_bytes"].as_u64()),
            (Some(way), Some(5)),
            "{slow}"
        );
        assert_eq!(slow["phases"]["queue_us"].as_f64(), Some(3e6), "{slow}");
        assert_eq!(slow["total_us"].as_f64(), Some(3e6), "{slow}");
        assert!(
            slow["received_bytes"].as_u64() > Some(50) && slow["sent_bytes"].as_u64() > Some(50),
            "{slow}"
        );
        // Makes the next write the slowest of its minute.
        fixture.clock.advance(Duration::from_secs(120));
    }
}

#[test]
fn a_wait_for_memory_counts_as_waiting_for_storage() {
    let dispatch = DispatchMode::Inline;
    let fixture = Fixture::with(ServerConfig { selectors: 1, dispatch, ..config() });
    let value = vec![b'v'; 100_000];
    fixture.put("k", &value);
    let (mut operator, mut reader) = (fixture.client(), fixture.client());
    for (operation, target, on_hyper) in [
        ("get", "/v0/entity?id=k", false),
        ("get", "/v0/entity?id=k", true),
        ("range", "/v0/entities?start=k", true),
    ] {
        // The fast path serves a connection's first plain requests.
        if on_hyper {
            assert_eq!(reader.request("HEAD", "/v0/status", b"").status, 200);
        }
        let count = recorded(&mut operator, operation) + 1;
        let taken = fixture.memory.reserve(Consumer::Requests, 1 << 40);
        let head_bytes = target.len() + "GET  HTTP/1.1\r\nHost: x\r\n\r\n".len();
        fixture.wait_for_receipt(head_bytes as u64, || reader.send_request("GET", target, b""));
        fixture.clock.advance(Duration::from_secs(3));
        drop(taken);
        // Memory that a request releases wakes those that wait.
        fixture.put("other", &vec![b'v'; 20_000]);
        let response = reader.read_response("GET");
        assert_eq!(response.status, 200);
        wait_until_recorded(&mut operator, operation, count);
        let slow = slowest(&mut operator, operation);
        assert_eq!(slow["phases"]["queue_us"].as_f64(), Some(3e6), "{slow}");
        assert_eq!(slow["phases"]["body_us"].as_f64(), Some(0.0), "{slow}");
        fixture.clock.advance(Duration::from_secs(120));
    }
}
