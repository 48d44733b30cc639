//! `/v0/history` over real sockets, by the clock of the system.

use crate::client::{Client, Response};
use crate::engine::Kvant;
use crate::fixture::{self, Events, Fixture};
use kvant_base::MemoryBudget;
use kvant_base::events::{EventKind, Field};
use kvant_engine::SyncLevel;
use kvant_env::Env;
use kvant_env::testing::FaultyFs;
use kvant_server::{Backend, MemoryStore, Server, ServerConfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

struct Recorded {
    server: Server,
    env: Env,
    recent: Arc<kvant_base::Events>,
}

impl Recorded {
    fn new() -> Recorded {
        let (env, memory) = (Env::posix(), MemoryBudget::new(64 << 20));
        let config = ServerConfig { history: Duration::from_secs(600), ..fixture::config() };
        let recent = kvant_base::Events::new(64);
        let log = Arc::new(Events::default());
        let server =
            Server::start(config, env.clone(), memory.clone(), log, recent.clone()).unwrap();
        server.set_ready(Backend::Local(Arc::new(MemoryStore::new(memory.clone()))));
        let recorded = Recorded { server, env, recent };
        // What is to be seen happens after the first reading.
        let mut client = recorded.client();
        while rows(&history(&mut client, ""), "windows").is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        recorded
    }

    fn client(&self) -> Client {
        Client::connect(self.server.local_addr())
    }
}

fn history(client: &mut Client, query: &str) -> Value {
    let response = client.request("GET", &format!("/v0/history{query}"), b"");
    assert_eq!(
        (response.status, response.header("content-type"), response.complete),
        (200, Some("application/json"), true),
        "{query}"
    );
    assert_eq!(response.header("cache-control"), Some("no-store"));
    response.json()
}

fn rows<'a>(document: &'a Value, list: &str) -> &'a Vec<Value> {
    document[list].as_array().unwrap()
}

fn number(row: &Value, member: &str) -> u64 {
    row[member].as_u64().unwrap_or_else(|| panic!("{member} of {row}"))
}

/// The requests of all windows, by operation.
fn counts(document: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for window in rows(document, "windows") {
        for (operation, figures) in window["operations"].as_object().unwrap() {
            *counts.entry(operation.clone()).or_default() += number(figures, "count");
        }
    }
    counts
}

/// Reads the history until the windows have `wanted` requests of an operation.
pub(crate) fn history_with(client: &mut Client, operation: &str, wanted: u64) -> Value {
    loop {
        let document = history(client, "");
        let count = counts(&document).get(operation).copied().unwrap_or(0);
        assert!(count <= wanted, "{count} of {wanted}");
        if count == wanted {
            return document;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn put(client: &mut Client, key: &str, value: &[u8]) -> Response {
    client.request("PUT", &format!("/v0/entity?id={key}"), value)
}

#[test]
fn windows_add_up_to_the_requests() {
    let recorded = Recorded::new();
    let mut clients: Vec<Client> = (0..4).map(|_| recorded.client()).collect();
    for round in 0..100 {
        for client in &mut clients {
            assert_eq!(put(client, &format!("k{round}"), b"value").status, 201);
            assert_eq!(client.request("GET", "/v0/entity?id=k0", b"").status, 200);
        }
        // On hyper.
        assert_eq!(clients[0].request("GET", "/v0/entities?start=k&limit=2", b"").status, 200);
    }
    clients[1].request("PUT", "/v0/entity?id=k&ttl=100", b"v").assert_problem(501, "not-supported");
    let mut operator = recorded.client();
    history_with(&mut operator, "get", 400);
    history_with(&mut operator, "range", 100);
    let document = history_with(&mut operator, "put", 401);

    assert_eq!((&document["format"], &document["version"]), (&"kvant-history".into(), &1.into()));
    assert_eq!(document["engine"], "memory");
    assert_eq!(number(&document, "pid"), u64::from(std::process::id()));
    assert_eq!(number(&document, "selectors"), 2);
    assert_eq!(number(&document, "window_ns"), 100_000_000);
    let bounds = rows(&document, "bucket_highest_ns");
    let (mut failed_count, mut put_ns) = (0, 0);
    let mut end_ns = None;
    for window in rows(&document, "windows") {
        let (start_ns, length_ns) = (number(window, "start_ns"), number(window, "length_ns"));
        assert!(end_ns.is_none_or(|end_ns| end_ns == start_ns), "windows follow each other");
        end_ns = Some(start_ns + length_ns);
        assert!(number(&window["machine"], "server_cpu_ns") > 0);
        for figures in window["operations"].as_object().unwrap().values() {
            let buckets = rows(figures, "buckets");
            let places: Vec<u64> = buckets.iter().map(|row| row[0].as_u64().unwrap()).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{figures}");
            let sum: u64 = buckets.iter().map(|row| row[1].as_u64().unwrap()).sum();
            assert_eq!(sum, number(figures, "count"));
            let longest_ns = bounds[*places.last().unwrap() as usize].as_u64().unwrap();
            assert!(number(figures, "max_ns") <= longest_ns);
        }
        if let Some(figures) = window["operations"].get("put") {
            failed_count += number(figures, "failed");
            let phases = figures["phases_ns"].as_object().unwrap();
            put_ns += phases.values().map(|phase| phase.as_u64().unwrap()).sum::<u64>();
        }
    }
    assert_eq!(failed_count, 1);
    // The same sum as in the cumulative statistics, which round it.
    let stats = operator.request("GET", "/v0/stats", b"").json();
    let total = &stats["latency"]["put"]["total"];
    let mean_us = put_ns as f64 / 401.0 / 1000.0;
    assert!((total["mean_us"].as_f64().unwrap() - mean_us).abs() < 0.01, "{total} {mean_us}");
    assert!(stats["server"]["memory_bytes"]["history"].is_u64(), "{stats}");
}

#[test]
fn slow_requests_and_events_are_there() {
    let recorded = Recorded::new();
    let mut client = recorded.client();
    // A client that sends its value slowly.
    client.send(
        "PUT /v0/entity?id=slow%20one HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.read_response("PUT").status, 100);
    let begun_ns = recorded.env.clock.monotonic_ns();
    std::thread::sleep(Duration::from_millis(20));
    client.send("v");
    assert_eq!(client.read_response("PUT").status, 201);
    let ended_ns = recorded.env.clock.monotonic_ns();
    let fields = vec![("file", Field::Text("wal".into()))];
    recorded.recent.add_complete(EventKind::Fsync, begun_ns, ended_ns, fields);
    let mut operator = recorded.client();
    let document = history_with(&mut operator, "put", 1);
    let slow = rows(&document, "slow").iter().find(|row| row["operation"] == "put").unwrap();
    assert_eq!((&slow["status"], &slow["key"]), (&201.into(), &"slow one".into()), "{slow}");
    assert!(number(slow, "start_ns") <= begun_ns, "{slow}");
    assert!(number(slow, "end_ns") >= begun_ns + 20_000_000, "{slow}");
    assert!(number(&slow["phases_ns"], "body") >= 20_000_000, "{slow}");
    assert_eq!(slow["stall"], Value::Null);
    let event = rows(&document, "events").last().unwrap();
    assert_eq!(
        *event,
        serde_json::json!({
            "kind": "fsync", "start_ns": begun_ns, "end_ns": ended_ns, "fields": {"file": "wal"},
        })
    );
}

#[test]
fn a_span_of_time_is_selected() {
    let recorded = Recorded::new();
    let mut client = recorded.client();
    let document = loop {
        let document = history(&mut client, "");
        if rows(&document, "windows").len() >= 5 {
            break document;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let windows = rows(&document, "windows");
    let start_ns = |index: usize| number(&windows[index], "start_ns");
    let query = format!("?from_ns={}&to_ns={}", start_ns(1), start_ns(3));
    assert_eq!(rows(&history(&mut client, &query), "windows"), &windows[1..3]);
    let query = format!("?to_ns={}&unknown=x", start_ns(2));
    assert_eq!(rows(&history(&mut client, &query), "windows"), &windows[..2]);
    let before_ns = recorded.env.clock.monotonic_ns();
    let document = history(&mut client, "?last=250ms");
    let end_ns = |window: &Value| number(window, "start_ns") + number(window, "length_ns");
    assert!(rows(&document, "windows").iter().all(|w| end_ns(w) > before_ns - 250_000_000));
    assert!(rows(&history(&mut client, &format!("?from_ns={}", u64::MAX)), "windows").is_empty());
    // HEAD and HTTP/1.0.
    assert_eq!(client.request("HEAD", "/v0/history", b"").status, 200);
    client.assert_goes_on();
    client.send("GET /v0/history?last=1s HTTP/1.0\r\nHost: x\r\n\r\n");
    let response = client.read_response("GET");
    assert_eq!((response.status, response.complete), (200, true));
    assert!(response.json()["windows"].is_array());
}

#[test]
fn bad_queries_are_400() {
    let recorded = Recorded::new();
    let mut client = recorded.client();
    for query in [
        "last=",
        "last=5",
        "last=0s",
        "last=-1s",
        "last=1s&last=1s",
        "last=1s&from_ns=1",
        "last=1s&to_ns=1",
        "from_ns=",
        "from_ns=-1",
        "from_ns=1e9",
        "to_ns=x",
        "to_ns=%zz",
        "from_ns=2&to_ns=1",
    ] {
        let target = format!("/v0/history?{query}");
        client.request("GET", &target, b"").assert_problem(400, "bad-query");
    }
    client.assert_goes_on();
}

#[test]
fn a_server_without_a_history_says_so() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.request("GET", "/v0/history", b"").assert_problem(404, "no-history");
    client.request("GET", "/v0/history?last=x", b"").assert_problem(400, "bad-query");
    client.assert_goes_on();
}

#[test]
fn a_pause_of_background_work_is_an_event() {
    let config = ServerConfig { history: Duration::from_secs(600), ..fixture::config() };
    let kvant = Kvant::with(FaultyFs::new(2), SyncLevel::Os, config);
    let mut client = kvant.client();
    while rows(&history(&mut client, ""), "windows").is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(put(&mut client, "k", b"v").status, 201);
    for query in ["", "?for=", "?for=0s", "?for=5", "?for=11s", "?for=1ms&for=1ms"] {
        let target = format!("/v0/admin/pause{query}");
        client.request("POST", &target, b"").assert_problem(400, "bad-query");
    }
    let pause = |client: &mut Client| client.request("POST", "/v0/admin/pause?for=300ms", b"");
    let response = pause(&mut client);
    assert_eq!(response.status, 200);
    assert_eq!(response.json(), serde_json::json!({"status": "paused", "for_us": 300_000}));
    let second = pause(&mut client);
    // Waits until the pause ends.
    assert_eq!(client.request("POST", "/v0/admin/flush", b"").status, 200);
    // A flush ends just after what it does can be seen.
    let is_flushed = |event: &Value| event["kind"] == "flush" && !event["end_ns"].is_null();
    let document = loop {
        let document = history(&mut client, "");
        if rows(&document, "events").iter().any(is_flushed) {
            break document;
        }
    };
    let of_kind = |kind: &str| {
        let events = rows(&document, "events").iter().filter(|event| event["kind"] == kind);
        events.map(|event| (number(event, "start_ns"), number(event, "end_ns"))).collect::<Vec<_>>()
    };
    let pauses = of_kind("pause");
    assert_eq!(pauses[0].1 - pauses[0].0, 300_000_000);
    assert!(of_kind("flush")[0].0 >= pauses[0].1, "{document}");
    // The second request may have been late.
    if pauses.len() == 1 {
        second.assert_problem(409, "pause-running");
    }
    kvant.stop().unwrap();
}

#[cfg(feature = "profiler")]
#[test]
fn stages_that_are_slowed_down_are_an_event() {
    let config = ServerConfig { history: Duration::from_secs(600), ..fixture::config() };
    let kvant = Kvant::with(FaultyFs::new(2), SyncLevel::Os, config);
    let mut client = kvant.client();
    while rows(&history(&mut client, ""), "windows").is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for query in [
        "",
        "?for=0s",
        "?for=61s",
        "?for=1s&for=1s",
        "?for=1s&fast=parse:10",
        "?for=1s&slow=",
        "?for=1s&slow=parse",
        "?for=1s&slow=parse:301",
        "?for=1s&slow=parse:-1",
        "?for=1s&slow=parse:inf",
        "?for=1s&slow=weather:10",
        "?for=1s&slow=parse:1,%zz",
    ] {
        let target = format!("/v0/admin/what-if{query}");
        client.request("POST", &target, b"").assert_problem(400, "bad-query");
    }
    let target = "/v0/admin/what-if?for=300ms&slow=parse:12.5,table%3A300";
    let response = client.request("POST", target, b"");
    let slow = serde_json::json!({"parse": 12.5, "table": 300.0});
    let wanted = serde_json::json!({"status": "slowed", "for_us": 300_000, "slow": slow});
    assert_eq!(response.json(), wanted);
    let second = client.request("POST", "/v0/admin/what-if?for=1ms", b"");
    assert_eq!(put(&mut client, "k", b"v").status, 201);
    assert_eq!(client.request("GET", "/v0/entity?id=k", b"").body, b"v");
    let ended = loop {
        let document = history(&mut client, "");
        let events = rows(&document, "events").iter();
        let of_kind: Vec<_> = events.filter(|event| event["kind"] == "what_if").cloned().collect();
        if of_kind.iter().all(|event| event["end_ns"].is_u64()) && !of_kind.is_empty() {
            break of_kind;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let event = &ended[0];
    assert_eq!(number(event, "end_ns") - number(event, "start_ns"), 300_000_000);
    // The second request may have been late.
    if ended.len() == 1 {
        second.assert_problem(409, "what-if-running");
    }
    kvant.stop().unwrap();
}
