//! Connections that keep the server waiting: idle ones, slow heads, slow bodies; and those that it
//! must not close.

use crate::client::Client;
use crate::fixture::{Fixture, NEVER, config};
use kvant_server::ServerConfig;
use std::io::Read;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// A short limit, yet too long for a test to exceed in a pause of its machine.
const SOON: Duration = Duration::from_secs(3);
/// A short limit that a test exceeds on purpose.
const AT_ONCE: Duration = Duration::from_millis(200);

fn short_limits() -> ServerConfig {
    ServerConfig { connection_idle_max: SOON, head_wait_max: SOON, ..config() }
}

/// Waits for as long as a connection may be idle.
fn wait_for_an_idle_connection(fixture: &Fixture) {
    assert!(fixture.client().is_closed());
}

fn figure(fixture: &Fixture, name: &str) -> u64 {
    let stats = fixture.request("GET", "/v0/stats", b"").json();
    stats["server"][name].as_u64().expect("a figure of the server")
}

fn wait_for(fixture: &Fixture, name: &str, least: u64) {
    while figure(fixture, name) < least {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A connection on which hyper has served a request.
fn with_hyper(fixture: &Fixture) -> Client {
    let mut client = fixture.client();
    assert_eq!(client.request("GET", "/v0/entities?start=none", b"").status, 200);
    client
}

#[test]
fn an_idle_connection_is_closed_without_a_response() {
    let fixture = Fixture::with(ServerConfig { head_wait_max: NEVER, ..short_limits() });
    let mut fresh = fixture.client();
    let mut plain = fixture.client();
    plain.assert_goes_on();
    let mut other = with_hyper(&fixture);
    for client in [&mut fresh, &mut plain, &mut other] {
        let mut rest = Vec::new();
        client.stream().read_to_end(&mut rest).expect("an orderly close");
        assert!(rest.is_empty(), "{}", rest.escape_ascii());
    }
    wait_for(&fixture, "idle_connections_closed", 3);
    assert_eq!(figure(&fixture, "head_timeouts"), 0);
}

#[test]
fn nothing_is_closed_before_its_time() {
    let fixture = Fixture::with(ServerConfig {
        connection_idle_max: Duration::from_secs(1),
        head_wait_max: Duration::from_millis(40),
        ..config()
    });
    let started = Instant::now();
    let mut client = fixture.client();
    assert!(client.is_closed());
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
}

#[test]
fn each_request_restarts_the_idle_time() {
    let fixture = Fixture::with(ServerConfig { connection_idle_max: SOON, ..config() });
    let mut plain = fixture.client();
    let mut other = with_hyper(&fixture);
    let started = Instant::now();
    while started.elapsed() < SOON + SOON / 3 {
        plain.assert_goes_on();
        assert_eq!(other.request("GET", "/v0/entities?start=none", b"").status, 200);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_head_that_arrives_too_slowly_is_408() {
    let fixture = Fixture::with(ServerConfig { head_wait_max: AT_ONCE, ..config() });
    let mut used = fixture.client();
    used.assert_goes_on();
    let mut clients = [fixture.client(), used, with_hyper(&fixture)];
    for client in &mut clients {
        let head = b"GET /v0/status HTTP/1.1\r\nHost: x\r\nX: ".iter().chain([b'x'].iter().cycle());
        client.send(b"G");
        client.stream().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        for byte in head.skip(1) {
            // The response may precede this byte, which is then lost.
            if client.stream().peek(&mut [0]).is_ok() || !client.send_if_open([*byte]) {
                break;
            }
        }
        client.stream().set_read_timeout(Some(NEVER)).unwrap();
        let response = client.read_response("GET");
        assert!(response.status == 408 && response.closes(), "{response:?}");
        assert!(response.body.is_empty() && response.header("date").is_some(), "{response:?}");
        assert!(client.is_closed());
    }
    assert_eq!(figure(&fixture, "head_timeouts"), 3);
    assert_eq!(figure(&fixture, "idle_connections_closed"), 0);
}

#[test]
fn a_head_pipelined_after_a_whole_request_is_408_too() {
    let fixture = Fixture::with(ServerConfig { head_wait_max: AT_ONCE, ..config() });
    let mut client = fixture.client();
    client.send("GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\nGET /v0/st");
    assert_eq!(client.read_response("GET").status, 200);
    assert_eq!(client.read_response("GET").status, 408);
    assert!(client.is_closed());
}

#[test]
fn the_rest_of_a_head_may_come_later() {
    let fixture = Fixture::with(ServerConfig { connection_idle_max: SOON, ..config() });
    let mut client = fixture.client();
    // Behind a request, so that hyper has both, and gives the connection back while it waits for
    // the rest.
    client.send("GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\nGET /v0/st");
    assert_eq!(client.read_response("GET").status, 200);
    wait_for_an_idle_connection(&fixture);
    client.send("atus HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.read_response("GET").status, 200);
    assert_eq!(figure(&fixture, "head_timeouts"), 0);
}

#[test]
fn a_client_that_waits_for_a_response_is_not_cut() {
    let fixture = Fixture::with(short_limits());
    fixture.store.faults.stalled.store(true, SeqCst);
    let mut plain = fixture.client();
    plain.send_request("PUT", "/v0/entity?id=a", b"v");
    let mut other = fixture.client();
    other.send(
        "PUT /v0/entity?id=b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nv\r\n0\r\n\r\n",
    );
    // Two requests in flight, and part of a third, which waits behind them, unread.
    let mut pipeline = fixture.client();
    let put = "PUT /v0/entity?id=c HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nv";
    pipeline.send(format!("{put}{put}GET /v0/st"));
    wait_for(&fixture, "write_stalls", 1);
    wait_for_an_idle_connection(&fixture);
    fixture.store.end_stall();
    assert_eq!(plain.read_response("PUT").status, 201);
    assert_eq!(other.read_response("PUT").status, 201);
    assert_eq!(pipeline.read_response("PUT").status, 201);
    assert_eq!(pipeline.read_response("PUT").status, 201);
    pipeline.send("atus HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(pipeline.read_response("GET").status, 200);
}

#[test]
fn a_slow_reader_of_a_range_is_not_cut() {
    let fixture = Fixture::new();
    for i in 0..300 {
        fixture.put(&format!("k{i}"), &[b'v'; 100_000]);
    }
    let Fixture { store, .. } = &fixture;
    let impatient = Fixture::with_store(short_limits(), store.clone());
    let mut client = impatient.client();
    client.send_request("GET", "/v0/entities?start=k", b"");
    wait_for_an_idle_connection(&impatient);
    let response = client.read_response("GET");
    assert!(response.chunks.len() == 300 && response.complete);
}

#[test]
fn a_reader_that_takes_bytes_steadily_is_not_cut() {
    const VALUE_BYTES: usize = 8 << 20;
    let fixture =
        Fixture::with(ServerConfig { range_idle_max: Duration::from_millis(1500), ..config() });
    fixture.put("k", &[b'v'; VALUE_BYTES]);
    let mut client = fixture.client();
    client.send_request("GET", "/v0/entity?id=k", b"");
    let head = client.read_head().expect("a response");
    assert_eq!(head.status, 200);
    // At this rate the kernel takes nothing from the server for more than the limit: its buffers
    // are larger.
    let mut taken = vec![0; 32 << 10];
    let mut taken_bytes = 0;
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(4500) {
        client.read_exact(&mut taken);
        taken_bytes += taken.len();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(figure(&fixture, "readers_cut"), 0);
    let mut rest = vec![0; VALUE_BYTES - taken_bytes];
    client.read_exact(&mut rest);
    client.assert_goes_on();
    // One that takes nothing is cut. (Not the same: the kernel has given it a larger buffer by
    // now.)
    let mut other = fixture.client();
    other.send_request("GET", "/v0/entity?id=k", b"");
    wait_for(&fixture, "readers_cut", 1);
}

#[test]
fn a_short_body_that_does_not_come_is_408() {
    let fixture = Fixture::with(ServerConfig { range_idle_max: AT_ONCE, ..config() });
    for (head, part) in [
        ("Content-Length: 5", ""),
        ("Content-Length: 5", "v"),
        ("Content-Length: 100000", ""),
        ("Content-Length: 100000", "v"),
        ("Transfer-Encoding: chunked", "5\r\nv"),
    ] {
        let mut client = fixture.client();
        client.send(format!("PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{part}"));
        let response = client.read_response("PUT");
        response.assert_problem(408, "request-timeout");
        assert!(response.closes() && client.is_closed(), "{head}");
    }
    assert_eq!(figure(&fixture, "body_timeouts"), 5);
    assert_eq!(fixture.request("GET", "/v0/entity?id=k", b"").status, 404);
}

#[test]
fn a_body_that_arrives_too_slowly_is_408() {
    let fixture =
        Fixture::with(ServerConfig { range_idle_max: Duration::from_secs(1), ..config() });
    let mut client = fixture.client();
    client.send("PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    // No pause is as long as the longest one.
    client.stream().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let started = Instant::now();
    while client.send_if_open("v") && client.stream().peek(&mut [0]).is_err() {
        assert!(started.elapsed() < NEVER, "the time of a body is unlimited");
    }
    client.stream().set_read_timeout(Some(NEVER)).unwrap();
    client.read_response("PUT").assert_problem(408, "request-timeout");
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
}

#[test]
fn many_slow_heads_do_not_keep_others_from_being_served() {
    let fixture = Fixture::with(ServerConfig {
        connections_max: None,
        connection_idle_max: NEVER,
        head_wait_max: Duration::from_secs(2),
        ..config()
    });
    let mut slow: Vec<Client> = (0..1000).map(|_| fixture.client()).collect();
    let mut other = fixture.client();
    for client in &mut slow {
        client.send("GET /v0/status HT");
        other.assert_goes_on();
    }
    wait_for(&fixture, "head_timeouts", 1000);
    other.assert_goes_on();
    for client in &mut slow {
        assert_eq!(client.read_response("GET").status, 408);
        assert!(client.is_closed());
    }
    while figure(&fixture, "connections_open") > 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn slow_heads_make_room_for_others_at_the_limit_of_connections() {
    let fixture = Fixture::with(ServerConfig {
        connections_max: Some(3),
        head_wait_max: AT_ONCE,
        ..config()
    });
    let mut slow: Vec<Client> = (0..3).map(|_| fixture.client()).collect();
    for client in &mut slow {
        client.send("GET /v0/status HT");
    }
    assert_eq!(fixture.request("GET", "/v0/status", b"").status, 200);
}

#[test]
fn an_idle_connection_frees_its_buffers() {
    let fixture = Fixture::with(ServerConfig {
        // Soon idle, not soon closed.
        head_wait_max: Duration::from_millis(40),
        ..config()
    });
    let mut clients: Vec<Client> = (0..50).map(|_| with_hyper(&fixture)).collect();
    let connection_bytes = || {
        let used_bytes = fixture.memory.used_bytes(kvant_base::Consumer::Connections);
        usize::try_from(used_bytes).unwrap() / clients.len()
    };
    while connection_bytes() > 5 << 10 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // They go on as before on both paths, repeatedly.
    for client in &mut clients {
        for _ in 0..2 {
            client.assert_goes_on();
            assert_eq!(client.request("PUT", "/v0/entity?id=k", &[b'v'; 20_000]).status, 201);
            assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body.len(), 20_000);
        }
    }
}
