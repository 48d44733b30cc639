//! A cluster that is too busy, or goes away while it is used, and comes back. `cargo xtask
//! cluster-check` names the process of the only node, which these tests stop for a while; they are
//! ignored otherwise.

use crate::cluster_copy::Keyspace;
use crate::connection::Connection;
use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use serde_json::Value;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Longest wait for a change, so that a hanging server fails the test.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// Longest wait for ranges to take all the room of a node.
const FULL_WAIT_MAX: Duration = Duration::from_secs(5);

/// More than a node takes at a time: each range of 16 buckets begins with at least eight requests
/// while no record is known.
const RANGE_COUNT: usize = 4_096 / 8 + 64;

/// The node, which is running again when this is dropped. One test at a time has it.
struct Node {
    pid: String,
    _turn: MutexGuard<'static, ()>,
}

impl Node {
    fn take() -> Node {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let pid = std::env::var("KVANT_TEST_CLUSTER_PID");
        Node { pid: pid.expect("`cargo xtask cluster-check` says"), _turn: turn }
    }

    /// Stops the node. A thread of it that runs when the signal is sent goes on until another one
    /// has taken the signal: an answer may still come.
    fn stop(&self) {
        self.signal("STOP");
        let begin = Instant::now();
        while !self.is_stopped() {
            assert!(begin.elapsed() < WAIT_MAX, "the node does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).expect("the node runs");
        tasks.flatten().all(|task| {
            // A thread that has ended meanwhile does nothing more.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        })
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid]).status();
        assert!(sent.expect("kill(1) exists").success(), "the node is not running any more");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.signal("CONT");
    }
}

/// The response to a request without a body.
fn exchange(server: &TestServer, method: &str, path: &str) -> String {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    String::from_utf8(server.exchange(request.as_bytes())).expect("text")
}

fn wait_for(server: &TestServer, path: &str, is_there: impl Fn(&str) -> bool) -> String {
    let begin = Instant::now();
    loop {
        let response = exchange(server, "GET", path);
        if is_there(&response) {
            return response;
        }
        assert!(begin.elapsed() < WAIT_MAX, "{path}: {response}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether the only node has as many requests in flight as it may have.
fn has_no_room(server: &TestServer) -> bool {
    let response = exchange(server, "GET", "/v0/stats");
    let body = response.split_once("\r\n\r\n").expect("a body").1;
    let stats: Value = serde_json::from_str(body).expect("an object");
    let node = &stats["engine"]["nodes"][0];
    let limit = node["in_flight_limit"].as_u64();
    limit.is_some_and(|limit| node["in_flight"].as_u64().is_some_and(|count| count >= limit))
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_cluster_that_goes_away_is_named_and_used_again_when_it_is_back() {
    let (node, dir) = (Node::take(), TempDir::new());
    let server = Keyspace::new(&dir).serve(&dir);
    assert!(exchange(&server, "PUT", "/v0/entity?id=key").starts_with("HTTP/1.1 201 "));
    node.stop();
    // A write in flight is answered when its connection is given up: it may be there or not.
    let response = exchange(&server, "PUT", "/v0/entity?id=key");
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    assert!(response.contains("\"no-answer\""), "{response}");
    assert!(exchange(&server, "GET", "/v0/status").starts_with("HTTP/1.1 200 "));
    let health = wait_for(&server, "/health", |response| response.starts_with("HTTP/1.1 503 "));
    assert!(health.contains("\"cluster-away\""), "{health}");
    for path in ["/v0/entity?id=key", "/v0/entities?start=a"] {
        let response = exchange(&server, "GET", path);
        assert!(response.starts_with("HTTP/1.1 503 "), "{path}: {response}");
        assert!(response.contains("\"cluster-away\""), "{path}: {response}");
    }
    node.signal("CONT");
    wait_for(&server, "/v0/entity?id=key", |response| response.starts_with("HTTP/1.1 200 "));
    wait_for(&server, "/health", |response| response.starts_with("HTTP/1.1 200 "));
    assert_eq!(server.stop().code, Some(0));
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn requests_that_find_no_room_at_a_node_are_refused_and_served_when_it_goes_on() {
    let (node, dir) = (Node::take(), TempDir::new());
    let server = Keyspace::new(&dir).serve(&dir);
    let get = "/v0/entity?id=key";
    let begin = Instant::now();
    // A node that is stopped has room for some seconds more: until its connections are given up.
    let refused = loop {
        node.stop();
        let mut waiting: Vec<Connection> = Vec::new();
        let mut send = |path: &str| {
            let mut connection = Connection::open(server.addr()).expect("the server listens");
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            connection.send(request.as_bytes()).expect("the server takes requests");
            waiting.push(connection);
        };
        (0..RANGE_COUNT).for_each(|_| send("/v0/entities?start=a"));
        let begin_full = Instant::now();
        while !has_no_room(&server) && begin_full.elapsed() < FULL_WAIT_MAX {
            // A range that does not find room for all its requests gives up what it has.
            send(get);
            std::thread::sleep(Duration::from_millis(5));
        }
        let response = exchange(&server, "GET", get);
        node.signal("CONT");
        drop(waiting);
        wait_for(&server, get, |response| response.starts_with("HTTP/1.1 404 "));
        if response.contains("\"nodes-busy\"") {
            break response;
        }
        assert!(begin.elapsed() < WAIT_MAX, "{response}");
    };
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("\"overloaded\"") && refused.contains("retry-after"), "{refused}");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_slow_request_names_its_coordinator_and_has_the_trace_of_the_cluster() {
    let (_node, dir) = (Node::take(), TempDir::new());
    let server = Keyspace::new(&dir).serve(&dir);
    let put = exchange(&server, "PUT", "/v0/entity?id=traced&trace=1");
    assert!(put.starts_with("HTTP/1.1 201 "), "{put}");
    let rows = |response: &str| {
        let body = response.split_once("\r\n\r\n").expect("a body").1;
        serde_json::from_str::<Vec<Value>>(body).expect("an array of requests")
    };
    let is_traced = |response: &str| {
        rows(response).iter().any(|row| row["cluster"]["trace"]["events"].is_array())
    };
    let slow = wait_for(&server, "/v0/slow?operation=put", is_traced);
    let [row] = &rows(&slow)[..] else { panic!("one put: {slow}") };
    let cluster = &row["cluster"];
    let node = std::env::var("KVANT_TEST_CLUSTER").expect("`cargo xtask cluster-check` names it");
    assert_eq!((row["key"].as_str(), cluster["node"].as_str()), (Some("traced"), Some(&*node)));
    assert_eq!((&cluster["attempts"], &cluster["second_read_won"]), (&1.into(), &false.into()));
    assert!(cluster["trace_id"].is_string(), "{cluster}");
    let events = cluster["trace"]["events"].as_array().expect("steps");
    assert!(
        !events.is_empty() && events.iter().all(|event| event["what"].is_string()),
        "{cluster}"
    );
    let bad = exchange(&server, "GET", "/v0/entity?id=traced&trace=2");
    assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
    assert_eq!(server.stop().code, Some(0));
}
