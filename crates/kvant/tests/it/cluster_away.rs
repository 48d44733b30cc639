//! A cluster that goes away while it is used, and comes back. `cargo xtask cluster-check` names the
//! process of the only node, which this test stops for a while; it is ignored otherwise.

use crate::cluster_copy::Keyspace;
use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait for a change, so that a hanging server fails the test.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// The node, which is running again when this is dropped.
struct Node(String);

impl Node {
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.0]).status();
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

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_cluster_that_goes_away_is_named_and_used_again_when_it_is_back() {
    let dir = TempDir::new();
    let server = Keyspace::new(&dir).serve(&dir);
    let node = std::env::var("KVANT_TEST_CLUSTER_PID").expect("`cargo xtask cluster-check` says");
    let node = Node(node);
    assert!(exchange(&server, "PUT", "/v0/entity?id=key").starts_with("HTTP/1.1 201 "));
    node.signal("STOP");
    // What is in flight is answered: when its time is over, or when the connection is given up.
    let response = exchange(&server, "GET", "/v0/entity?id=key");
    let is_known = ["504 ", "503 "].map(|status| format!("HTTP/1.1 {status}"));
    assert!(is_known.iter().any(|start| response.starts_with(start)), "{response}");
    assert!(["\"no-answer\"", "\"cluster-away\""].iter().any(|kind| response.contains(kind)));
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
