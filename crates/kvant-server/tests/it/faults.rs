//! Failures of the store, and batches that share their outcome.

use crate::client::Client;
use crate::fixture::{Fixture, config};
use kvant_base::Consumer;
use kvant_server::{DispatchMode, ServerConfig};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

#[test]
fn writes_of_one_turn_share_a_batch() {
    let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
    let mut clients: Vec<Client> = (0..50).map(|_| fixture.client()).collect();
    clients.iter_mut().for_each(Client::assert_goes_on);
    // They wait together and are committed together, unless the selector runs between the wake-ups:
    // that is up to the system's scheduler, so there are ten attempts.
    let mut batches = Vec::new();
    while batches.iter().all(|count| *count >= 25) {
        assert!(batches.len() < 10, "each time 50 writes took so many batches: {batches:?}");
        let before = fixture.store.batches.load(SeqCst);
        fixture.store.faults.stalled.store(true, SeqCst);
        fixture.wait_for_receipt(50 * 63, || {
            for (i, client) in clients.iter_mut().enumerate() {
                client.send_request("PUT", &format!("/v0/entity?id=k{i:02}"), b"v");
            }
        });
        fixture.store.end_stall();
        for client in &mut clients {
            assert_eq!(client.read_response("PUT").status, 201);
        }
        batches.push(fixture.store.batches.load(SeqCst) - before);
    }
    assert_eq!(fixture.request("GET", "/v0/stats", b"").json()["engine"]["records"], 50);
}

#[test]
fn a_stall_is_waited_out_while_others_go_on() {
    let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
    fixture.put("k", b"old");
    fixture.store.faults.stalled.store(true, SeqCst);
    let mut writer = fixture.client();
    writer.send_request("PUT", "/v0/entity?id=k&ttl=1", b"new");
    let mut reader = fixture.client();
    for _ in 0..100 {
        assert_eq!(reader.request("GET", "/v0/entity?id=k", b"").body, b"old");
    }
    // The time to live begins when the value is there.
    fixture.clock.advance(Duration::from_secs(30));
    fixture.store.end_stall();
    assert_eq!(writer.read_response("PUT").status, 201);
    assert_eq!(reader.request("GET", "/v0/entity?id=k", b"").body, b"new");
}

#[test]
fn puts_and_deletes_of_a_stall_make_two_batches_and_name_it() {
    let dispatch = DispatchMode::Hybrid;
    let fixture = Fixture::with(ServerConfig { selectors: 1, dispatch, ..config() });
    let mut clients: Vec<Client> = (0..20).map(|_| fixture.client()).collect();
    clients.iter_mut().for_each(Client::assert_goes_on);
    fixture.store.faults.stalled.store(true, SeqCst);
    let method = |number: usize| if number.is_multiple_of(2) { "PUT" } else { "DELETE" };
    fixture.wait_for_receipt(10 * (62 + 46), || {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send_request(method(number), &format!("/v0/entity?id=k{number:02}"), b"");
        }
    });
    fixture.store.end_stall();
    for (number, client) in clients.iter_mut().enumerate() {
        let status = if method(number) == "PUT" { 201 } else { 202 };
        assert_eq!(client.read_response(method(number)).status, status);
    }
    assert_eq!(fixture.store.batches.load(SeqCst), 2);
    for operation in ["put", "delete"] {
        let target = format!("/v0/slow?operation={operation}");
        let slow = clients[0].request("GET", &target, b"").json();
        let stalls = slow.as_array().unwrap().iter().map(|write| write["stall"].as_str());
        assert_eq!(stalls.collect::<Vec<_>>(), [Some("test"); 10], "{operation}");
    }
}

#[test]
fn a_stall_that_lasts_too_long_is_503_and_nothing_is_written() {
    let fixture =
        Fixture::with(ServerConfig { queue_wait_max: Duration::from_millis(30), ..config() });
    fixture.put("k", b"old");
    fixture.store.faults.stalled.store(true, SeqCst);
    let mut client = fixture.client();
    for method in ["PUT", "DELETE", "PUT"] {
        client.request(method, "/v0/entity?id=k", b"").assert_problem(503, "stalled");
        assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"old");
    }
    fixture.store.end_stall();
    assert_eq!(client.request("PUT", "/v0/entity?id=k", b"new").status, 201);
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"new");
}

/// Short bodies of the fast path are counted nowhere else.
#[test]
fn writes_that_wait_for_the_end_of_a_stall_are_in_the_memory_budget() {
    let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
    fixture.store.faults.stalled.store(true, SeqCst);
    let mut first = fixture.client();
    first.send_request("PUT", "/v0/entity?id=first", b"v");
    while fixture.request("GET", "/v0/stats", b"").json()["server"]["write_stalls"] != 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // All that connections may have.
    let half_bytes = fixture.memory.limit_bytes() / 2;
    let taken = fixture.memory.reserve(Consumer::Connections, half_bytes);
    let mut client = fixture.client();
    for (method, body) in [("PUT", "v"), ("DELETE", ""), ("PUT", "v")] {
        let response = client.request(method, "/v0/entity?id=k", body.as_bytes());
        response.assert_problem(503, "no-memory");
    }
    drop(taken);
    client.send_request("PUT", "/v0/entity?id=k", b"v");
    fixture.store.end_stall();
    assert_eq!(first.read_response("PUT").status, 201);
    assert_eq!(client.read_response("PUT").status, 201);
}

#[test]
fn completions_may_run_on_another_thread() {
    let fixture = Fixture::new();
    fixture.store.faults.completes_elsewhere.store(true, SeqCst);
    let mut clients: Vec<Client> = (0..20).map(|_| fixture.client()).collect();
    for round in 0..20 {
        for (i, client) in clients.iter_mut().enumerate() {
            client.send_request(
                "PUT",
                &format!("/v0/entity?id=k{i}"),
                format!("{round}").as_bytes(),
            );
        }
        for (i, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.read_response("PUT").status, 201);
            assert_eq!(
                client.request("GET", &format!("/v0/entity?id=k{i}"), b"").body,
                format!("{round}").as_bytes()
            );
        }
    }
}

#[test]
fn a_full_disk_is_507_for_puts_while_reads_and_deletes_go_on() {
    let fixture = Fixture::with(ServerConfig { selectors: 1, ..config() });
    for i in 0..20 {
        fixture.put(&format!("old{i}"), b"v");
    }
    fixture.store.faults.disk_full.store(true, SeqCst);
    // A stall gathers puts and deletes; completions run on another thread as well.
    for elsewhere in [false, true] {
        fixture.store.faults.completes_elsewhere.store(elsewhere, SeqCst);
        fixture.store.faults.stalled.store(true, SeqCst);
        let mut clients: Vec<Client> = (0..20).map(|_| fixture.client()).collect();
        for (i, client) in clients.iter_mut().enumerate() {
            match i % 2 {
                0 => client.send_request(
                    "DELETE",
                    &format!("/v0/entity?id=old{}", i + usize::from(elsewhere)),
                    b"",
                ),
                _ => client.send_request("PUT", &format!("/v0/entity?id=new{i}"), b"v"),
            }
        }
        let mut reader = fixture.client();
        assert_eq!(reader.request("GET", "/v0/entity?id=old19", b"").body, b"v");
        fixture.store.end_stall();
        for (i, client) in clients.iter_mut().enumerate() {
            let response = client.read_response("PUT");
            if i % 2 == 0 {
                assert_eq!(response.status, 202, "{response:?}");
            } else {
                response.assert_problem(507, "no-space");
            }
        }
    }
    assert_eq!(fixture.request("GET", "/v0/stats", b"").json()["engine"]["records"], 0);
    fixture.store.faults.disk_full.store(false, SeqCst);
    fixture.put("healed", b"v");
}

#[test]
fn health_says_that_the_disk_is_full() {
    let fixture = Fixture::new();
    let health = || {
        let response = fixture.request("GET", "/health", b"");
        assert_eq!(response.status, 200);
        response.json()["writes"].clone()
    };
    assert_eq!(health(), "ok");
    fixture.store.faults.disk_full.store(true, SeqCst);
    assert_eq!(health(), "no-space");
    fixture.store.faults.disk_full.store(false, SeqCst);
    assert_eq!(health(), "ok");
}

#[test]
fn a_failed_fsync_fences_writes() {
    let fixture = Fixture::new();
    fixture.put("k", b"v");
    fixture.store.faults.fsync_fails.store(true, SeqCst);
    let mut client = fixture.client();
    client.request("PUT", "/v0/entity?id=k2", b"v").assert_problem(500, "outcome-unknown");
    client.request("PUT", "/v0/entity?id=k3", b"v").assert_problem(500, "fenced");
    client.request("DELETE", "/v0/entity?id=k", b"").assert_problem(500, "fenced");
    client.request("GET", "/health", b"").assert_problem(503, "fenced");
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"v", "reads go on");
    assert_eq!(client.request("GET", "/v0/entities?start=k", b"").body, b"k\nv");
    assert_eq!(client.request("GET", "/v0/status", b"").status, 200);
}

#[test]
fn damage_is_500_with_file_and_offset_in_the_log() {
    let fixture = Fixture::new();
    fixture.put("bad", b"v");
    fixture.put("good", b"v");
    *fixture.store.faults.damaged_key.lock().unwrap() = Some(b"bad".to_vec());
    let mut client = fixture.client();
    client.request("GET", "/v0/entity?id=bad", b"").assert_problem(500, "corruption");
    assert_eq!(client.request("GET", "/v0/entity?id=good", b"").body, b"v");
    assert!(
        fixture
            .events
            .has("error request_failed error=block checksum in 000007.table at byte 4096")
    );
}
