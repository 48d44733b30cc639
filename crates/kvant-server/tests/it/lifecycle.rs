//! Start, recovery, connection limit, stop.

use crate::client::Client;
use crate::fixture::{Fixture, NEVER, config};
use kvant_server::{Backend, DispatchMode, Server, ServerConfig};
use std::net::TcpStream;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn before_recovery_is_finished() {
    let fixture = Fixture::recovering(config());
    let mut client = fixture.client();
    assert_eq!(client.request("GET", "/v0/status", b"").status, 200);
    assert_eq!(client.request("HEAD", "/v0/status", b"").status, 200);
    for (method, target) in [
        ("GET", "/v0/entity?id=k"),
        ("PUT", "/v0/entity?id=k"),
        ("DELETE", "/v0/entity?id=k"),
        ("GET", "/v0/entities?start=k"),
    ] {
        client.request(method, target, b"body").assert_problem(503, "recovering");
    }
    client.request("POST", "/v0/admin/flush", b"").assert_problem(503, "recovering");
    client.request("POST", "/v0/admin/checkpoint?dir=/x", b"").assert_problem(503, "recovering");
    let health = client.request("GET", "/health", b"");
    health.assert_problem(503, "recovering");
    assert_eq!(health.json()["recovery_per_cent"], 0);
    // Bad requests are rejected already.
    client.request("GET", "/v0/entity?id=", b"").assert_problem(400, "bad-query");
    assert_eq!(client.request("GET", "/metrics", b"").status, 200);
    assert!(client.request("GET", "/v0/stats", b"").json()["engine"].is_null());

    fixture.server.set_ready(Backend::Local(fixture.store.clone()));
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"v").status, 201);
    assert_eq!(client.request("GET", "/health", b"").status, 200);
}

#[test]
fn stopping_closes_idle_connections_and_the_store() {
    let fixture = Fixture::new();
    let mut idle = fixture.client();
    idle.assert_goes_on();
    let mut fresh = fixture.client();
    let address = fixture.address();
    fixture.server.stop(NEVER).unwrap();
    assert!(idle.is_closed() && fresh.is_closed());
    assert!(fixture.store.closed.load(SeqCst));
    assert!(TcpStream::connect(address).is_err(), "the listener is closed");
}

#[test]
fn stopping_does_not_wait_for_clients_after_their_last_response() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send("GET /v0/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(client.read_response("GET").closes());
    fixture.server.stop(NEVER).unwrap();
    assert!(!fixture.events.has("connections_cut"));
    assert!(client.is_closed());
}

#[test]
fn stopping_lets_requests_finish() {
    let fixture = Fixture::new();
    fixture.store.faults.stalled.store(true, SeqCst);
    let mut writers: Vec<Client> = (0..4).map(|_| fixture.client()).collect();
    fixture.wait_for_receipt(4 * 61, || {
        for writer in &mut writers {
            writer.send_request("PUT", "/v0/entity?id=k", b"v");
        }
    });
    let Fixture { server, store, .. } = fixture;
    let stopping = std::thread::spawn(move || server.stop(NEVER));
    let mut watched = writers.pop().unwrap();
    store.end_stall();
    assert_eq!(watched.read_response("PUT").status, 201);
    for writer in &mut writers {
        assert_eq!(writer.read_response("PUT").status, 201);
        assert!(writer.is_closed());
    }
    stopping.join().unwrap().unwrap();
    assert!(store.closed.load(SeqCst));
}

#[test]
fn stopping_lets_requests_finish_that_wait_unread() {
    // More than the event loop learns of at once, which are more than a turn serves.
    const COUNT: usize = 1100;
    let get = |client: &mut Client| client.send_request("GET", "/v0/entity?id=k", b"");
    let fixture = Fixture::with(ServerConfig {
        selectors: 1,
        dispatch: DispatchMode::Inline,
        connections_max: Some(COUNT + 1),
        ..config()
    });
    fixture.put("k", b"v");
    let mut clients: Vec<Client> = (0..COUNT).map(|_| fixture.client()).collect();
    for client in &mut clients {
        // Not for the status: then the next request would not wait.
        assert_eq!(client.request("GET", "/v0/entity?id=k", b"").status, 200);
    }
    let Fixture { server, store, .. } = fixture;
    let held = store.hold_reads();
    let read_count = store.reads.load(SeqCst);
    get(&mut clients[0]);
    store.wait_for_reads(read_count + 1);
    // The stop wakes the first connections first, and the event loop learns of them last.
    clients[1..].iter_mut().rev().for_each(get);
    let stopping = std::thread::spawn(move || server.stop(NEVER));
    // A stop that comes later finds fewer requests that wait.
    std::thread::sleep(Duration::from_millis(50));
    drop(held);
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.read_response("GET").body, b"v", "client {number}");
    }
    stopping.join().unwrap().unwrap();
}

/// A socket that is closed with unread bytes resets the connection, and what the client has not
/// received is lost.
#[test]
fn stopping_does_not_cut_a_response_behind_which_the_client_has_sent_more() {
    // More than the kernel takes before the client reads.
    const VALUE_BYTES: usize = 15 << 20;
    const RECORDS: usize = 6;
    let fixture = Fixture::new();
    (0..RECORDS).for_each(|number| fixture.put(&format!("k{number}"), &vec![b'v'; VALUE_BYTES]));
    let mut client = fixture.client();
    let get = "GET /v0/entities?start=k HTTP/1.1\r\nHost: x\r\n\r\n";
    fixture.wait_for_receipt(get.len() as u64, || client.send(get));
    client.send(get);
    let Fixture { server, .. } = fixture;
    let stopping = std::thread::spawn(move || server.stop(NEVER));
    let response = client.read_response("GET");
    assert_eq!((response.status, response.chunks.len(), response.complete), (200, RECORDS, true));
    // If the stop came late, the second response is on its way.
    drop(client);
    stopping.join().unwrap().unwrap();
}

#[test]
fn stopping_is_bounded_by_the_grace_time() {
    let fixture = Fixture::new();
    fixture.store.faults.stalled.store(true, SeqCst);
    let mut writer = fixture.client();
    writer.send_request("PUT", "/v0/entity?id=k", b"v");
    while fixture.request("GET", "/v0/stats", b"").json()["server"]["write_stalls"] != 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    fixture.server.stop(Duration::from_millis(10)).unwrap();
    assert!(writer.is_closed());
    assert!(fixture.events.has("connections_cut"));
}

#[test]
fn stopping_does_not_wait_for_a_read_that_does_not_end() {
    let fixture = Fixture::new();
    let store = Arc::clone(&fixture.store);
    let held = store.hold_ranges();
    let mut client = fixture.client();
    client.send_request("GET", "/v0/entities?start=a", b"");
    while store.ranges.load(SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (done, stopped) = mpsc::channel();
    let Fixture { server, events, .. } = fixture;
    std::thread::spawn(move || done.send(server.stop(Duration::from_millis(10))));
    let result = stopped.recv_timeout(Duration::from_secs(30));
    result.expect("the stop ends though the read does not").unwrap();
    assert!(store.closed.load(SeqCst));
    assert!(events.has("threads_left"));
    drop(held);
}

#[test]
fn connections_over_the_limit_wait_for_others_to_close() {
    let fixture = Fixture::with(ServerConfig { connections_max: Some(3), ..config() });
    let mut open: Vec<Client> = (0..3).map(|_| fixture.client()).collect();
    open.iter_mut().for_each(Client::assert_goes_on);
    let mut waiting = fixture.client();
    waiting.send_request("GET", "/v0/status", b"");
    waiting.stream().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(waiting.stream().peek(&mut [0]).is_err(), "a fourth connection was served");
    waiting.stream().set_read_timeout(Some(NEVER)).unwrap();
    drop(open.pop());
    assert_eq!(waiting.read_response("GET").status, 200);
    // Accepting waited when the third had come, and waits again now that the fourth has.
    while waiting.request("GET", "/v0/stats", b"").json()["server"]["accept_waits"] != 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn connections_are_spread_evenly() {
    let fixture = Fixture::with(ServerConfig { selectors: 4, ..config() });
    let mut clients: Vec<Client> = (0..40).map(|_| fixture.client()).collect();
    clients.iter_mut().for_each(Client::assert_goes_on);
    let stats = clients[0].request("GET", "/v0/stats", b"").json();
    assert_eq!(
        stats["server"]["connections_open_by_selector"],
        serde_json::json!([10, 10, 10, 10])
    );
}

#[test]
fn contradictory_settings_are_all_reported_at_once() {
    let config = ServerConfig {
        selectors: 0,
        workers: 1025,
        queue_capacity: 0,
        selector_cpus: vec![0, 100_000],
        range_idle_max: Duration::ZERO,
        connection_idle_max: Duration::ZERO,
        head_wait_max: Duration::ZERO,
        ..config()
    };
    let memory = kvant_base::MemoryBudget::new(1 << 30);
    let error = Server::start(
        config,
        kvant_env::Env::posix(),
        memory,
        std::sync::Arc::new(kvant_base::NoLog),
        kvant_base::Events::new(1),
    )
    .err();
    let text = error.unwrap().to_string();
    for part in [
        "0 selectors",
        "1025 workers",
        "queue for 0",
        "CPU 100000 ",
        "range idle",
        "connection idle",
        "head wait",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_address_in_use_is_named() {
    let fixture = Fixture::new();
    let config = ServerConfig { listen: fixture.address(), ..config() };
    let memory = kvant_base::MemoryBudget::new(1 << 30);
    let error = Server::start(
        config,
        kvant_env::Env::posix(),
        memory,
        std::sync::Arc::new(kvant_base::NoLog),
        kvant_base::Events::new(1),
    )
    .err();
    assert!(error.unwrap().to_string().contains(&fixture.address().to_string()));
}
