//! Many connections.
//!
//! Ten thousand need as many descriptors on both sides, more than many systems allow one process.
//! The server is then this program again, as a child that runs [`serve_for_a_parent`] alone.

use crate::harness::{Setup, ensure, experiment, text};
use crate::server::{Behaviour, Server};
use kvant_env::posix::raise_descriptor_limit;
use kvant_load::Errors;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const ROLE: &str = "KVANT_LOAD_IT_SERVES";
/// The child writes this before its URL.
const URL: &str = "serving at ";

#[test]
fn a_thousand_connections_are_busy_at_once() {
    raise_descriptor_limit(u64::MAX);
    experiment(|| {
        // A request takes 0.5 s: at 1,900 a second, 950 connections are busy at any time.
        let server = Server::start(Behaviour::After(Duration::from_millis(500)));
        let setup = Setup::new(server.url()).connections(1_024).threads(3);
        let outcome = setup.run(1_900.0, Duration::from_millis(1_500));
        assert_eq!(outcome.total.errors, Errors::default(), "{}", text(&outcome));
        let connections = server.counts.connections();
        assert!(connections <= 1_024, "{connections}");
        // The server may not have accepted all.
        ensure!(connections == 1_024, "{connections} connections");
        ensure!(outcome.total.completed >= 1_500, "{}", text(&outcome));
        ensure!(outcome.response().percentile_ns(50.0) < 700_000_000, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
#[ignore = "needs 10,100 descriptors in each of two processes"]
fn ten_thousand_connections_are_busy_at_once() {
    experiment(|| {
        let server = ChildServer::start();
        let setup = Setup::new(server.url.as_str()).connections(10_000).threads(2);
        // A request takes 0.9 s: at 10,000 a second, 9,000 connections are busy at any time.
        let outcome = setup.run(10_000.0, Duration::from_secs(3));
        drop(server);
        assert_eq!(outcome.total.errors, Errors::default(), "{}", text(&outcome));
        assert_eq!(outcome.total.connect.count(), 10_000);
        ensure!(outcome.total.completed >= 20_000, "{}", text(&outcome));
        Ok(())
    });
}

/// The server of a parent process, not a test.
#[test]
#[ignore = "is the server of another test"]
fn serve_for_a_parent() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    raise_descriptor_limit(u64::MAX);
    let server = Server::start(Behaviour::After(Duration::from_millis(900)));
    println!("{URL}{}", server.url());
    // Until the parent closes its end.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// A server in another process, which ends when this is dropped.
struct ChildServer {
    child: Child,
    /// Keeps the child's output open.
    output: BufReader<ChildStdout>,
    url: String,
}

impl ChildServer {
    fn start() -> ChildServer {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["connections::serve_for_a_parent", "--exact", "--ignored", "--nocapture"])
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = ChildServer { child, output, url: String::new() };
        while server.url.is_empty() {
            let mut line = String::new();
            assert!(
                server.output.read_line(&mut line).unwrap() > 0,
                "the child does not say where it listens"
            );
            if let Some((_, url)) = line.trim_end().split_once(URL) {
                server.url = url.to_owned();
            }
        }
        server
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success() || std::thread::panicking(), "{status}");
    }
}
