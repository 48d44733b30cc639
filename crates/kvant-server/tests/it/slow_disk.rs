//! A disk on which every read or fsync takes long: requests that need no disk are not delayed.
//!
//! The tests compare the order of responses, not times: a pause of the machine delays all of them.

use crate::client::Client;
use crate::engine::Kvant;
use crate::fixture::config;
use crate::history;
use crate::modes;
use kvant_engine::SyncLevel;
use kvant_env::testing::FaultyFs;
use kvant_server::{DispatchMode, ServerConfig};
use serde_json::Value;
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(300);
/// A pause of the machine longer than the disk takes proves nothing: the experiment is repeated.
const TRIES: usize = 10;

/// One selector: a blocked request blocks all others. Inline reads do so by contract.
fn one_selector() -> ServerConfig {
    let dispatch = match modes::dispatch() {
        DispatchMode::Inline => DispatchMode::Hybrid,
        other => other,
    };
    ServerConfig { selectors: 1, dispatch, history: Duration::from_secs(600), ..config() }
}

fn target(number: usize) -> String {
    format!("/v0/entity?id=k{number:04}")
}

/// Records in tables, of which only the first block has been read.
fn with_a_cold_table(sync: SyncLevel) -> Kvant {
    let kvant = Kvant::with(FaultyFs::new(1), sync, one_selector());
    let mut client = kvant.client();
    let value = [b'v'; 1000];
    for number in 0..200 {
        assert_eq!(client.request("PUT", &target(number), &value).status, 201);
    }
    assert_eq!(client.request("POST", "/v0/admin/flush", b"").status, 200);
    assert_eq!(client.request("GET", &target(0), b"").status, 200);
    kvant
}

/// Requests for the status and for records in memory, ten times.
fn request_records_in_memory(client: &mut Client) {
    for _ in 0..10 {
        assert_eq!(client.request("GET", "/v0/status", b"").status, 200);
        assert_eq!(client.request("GET", &target(0), b"").status, 200);
        assert_eq!(client.request("GET", "/v0/entity?id=in-no-table", b"").status, 404);
    }
}

#[test]
fn cached_reads_and_status_do_not_wait_for_reads_of_the_disk() {
    let kvant = with_a_cold_table(SyncLevel::Os);
    kvant.disk.set_read_delay(DELAY);
    let (mut cold, mut warm) = (kvant.client(), kvant.client());
    let overtaken = (1..=TRIES).any(|block| {
        cold.send_request("GET", &target(20 * block - 1), b"");
        request_records_in_memory(&mut warm);
        let overtaken = !cold.has_response();
        assert_eq!(cold.read_response("GET").status, 200);
        overtaken
    });
    assert!(overtaken, "reads of memory wait for the disk");
    let range = "/v0/entities?start=k0005";
    let overtaken = (1..=TRIES).any(|_| {
        cold.send_request("GET", range, b"");
        request_records_in_memory(&mut warm);
        let overtaken = !cold.has_response();
        assert_eq!(cold.read_response("GET").chunks.len(), 195);
        overtaken
    });
    assert!(overtaken, "reads of memory wait for a range");
    kvant.stop().unwrap();
}

#[test]
fn a_slow_request_says_how_long_it_read_blocks() {
    let kvant = with_a_cold_table(SyncLevel::Os);
    kvant.disk.set_read_delay(DELAY);
    let mut client = kvant.client();
    let range = "/v0/entities?start=k0005".to_owned();
    for (operation, target, count) in [("get", target(150), 2), ("range", range, 1)] {
        assert_eq!(client.request("GET", &target, b"").status, 200);
        let slow = client.request("GET", &format!("/v0/slow?limit=1&operation={operation}"), b"");
        let slow = slow.json()[0].take();
        let read_us = slow["block_read_us"].as_f64().unwrap_or_default();
        assert!(read_us >= DELAY.as_secs_f64() * 1e6, "{slow}");
        assert!(read_us <= slow["total_us"].as_f64().unwrap_or_default(), "{slow}");
        if operation == "get" {
            // It has no body: an attempt without a worker is a part of the wait for the storage.
            assert_eq!(slow["phases"]["body_us"].as_f64(), Some(0.0), "{slow}");
        }
        let document = history::history_with(&mut client, operation, count);
        let windows = document["windows"].as_array().unwrap();
        let of_window = |window: &Value| window["operations"][operation]["block_read_ns"].as_u64();
        let read_ns: u64 = windows.iter().filter_map(of_window).sum();
        // The first get of all read a block, too, without a delay.
        let others_us = read_ns as f64 / 1e3 - read_us;
        assert!(others_us.abs() < DELAY.as_secs_f64() * 1e6 / 2.0, "{others_us} in {document}");
    }
    kvant.stop().unwrap();
}

#[test]
fn reads_and_status_do_not_wait_for_fsyncs() {
    let kvant = with_a_cold_table(SyncLevel::Always);
    kvant.disk.set_sync_delay(DELAY);
    let (mut writer, mut warm) = (kvant.client(), kvant.client());
    let overtaken = (1..=TRIES).any(|number| {
        writer.send_request("PUT", &target(1000 + number), b"v");
        request_records_in_memory(&mut warm);
        let overtaken = !writer.has_response();
        assert_eq!(writer.read_response("PUT").status, 201);
        overtaken
    });
    assert!(overtaken, "reads wait for an fsync");
    kvant.disk.set_sync_delay(Duration::ZERO);
    kvant.stop().unwrap();
}
