//! A server that stops while clients write, and one that gets requests while it recovers.

use crate::clients::{Clients, Plan, seed};
use crate::connection::Connection;
use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use kvant_env::rng::Rng;
use serde_json::Value;
use std::time::Duration;

#[test]
fn a_stop_while_clients_write_loses_nothing_acknowledged() {
    let mut rng = Rng::new(seed("stop"));
    let mut clients = Clients::new(rng.next_u64());
    let dir = TempDir::new();
    for sync in ["os", "interval=100ms", "always"] {
        let args = ["--memory", "64MiB", "--sync", sync];
        let server = TestServer::start_with(dir.path(), &args);
        clients.check(&server);
        let plan = Plan {
            writes: 1_000,
            delay: Duration::from_micros(rng.below(20_000)),
            operator: false,
        };
        let (acknowledged, server) = clients.write_until(server, &plan, |server| {
            server.signal("TERM");
            server
        });
        let ended = server.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.line("stopped");
        println!("{sync}: stopped after {acknowledged} acknowledged writes");
    }
    let server = TestServer::start(dir.path());
    clients.check(&server);
    assert_eq!(server.stop().code, Some(0));
}

/// Records of the recovered log: some 30 MB, less than the memtable of `RECOVERY_ARGS`.
const RECORDS: u64 = 480;
const VALUE_BYTES: usize = 64 << 10;
const RECOVERY_ARGS: [&str; 2] = ["--memory", "1GiB"];

#[test]
fn a_recovering_server_reports_progress_and_then_has_everything() {
    let dir = TempDir::new();
    let server = TestServer::start_with(dir.path(), &RECOVERY_ARGS);
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    for number in 0..RECORDS {
        let head = format!(
            "PUT /v0/entity?id={number:04} HTTP/1.1\r\nHost: x\r\nContent-Length: {VALUE_BYTES}\r\n\r\n"
        );
        connection.send(&[head.as_bytes(), &value(number)].concat()).expect("taken");
        assert_eq!(connection.receive().expect("a response").status, 201);
    }
    server.kill();

    let mut server = TestServer::start_listening(dir.path(), &RECOVERY_ARGS);
    let mut seen = Seen::default();
    // A bound for a recovery that never ends.
    for _ in 0..60_000 {
        seen.poll(&server);
        if seen.ready > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{seen:?}");
    assert!(seen.ready > 0, "recovery never ends: {seen:?}");
    server.wait_for_event("ready");
    seen.poll(&server);
    assert_eq!(seen.ready, 2, "a server that is ready stays so");

    let mut connection = Connection::open(server.addr()).expect("the server listens");
    let records = connection.all_records().expect("a whole range");
    assert_eq!(records.len() as u64, RECORDS);
    for (number, (key, found)) in (0..).zip(records) {
        assert_eq!(key, format!("{number:04}").into_bytes());
        assert!(found == value(number), "another value under {number}");
    }
    assert_eq!(server.stop().code, Some(0));
}

fn value(number: u64) -> Vec<u8> {
    Rng::new(number).bytes(VALUE_BYTES)
}

/// The responses of a recovering server.
#[derive(Debug, Default)]
struct Seen {
    recovering: u64,
    ready: u64,
    per_cent: u64,
}

impl Seen {
    /// Sends each request once. Readiness and progress only increase.
    fn poll(&mut self, server: &TestServer) {
        let (status, _, body) = get(server, "/v0/status");
        assert_eq!(status, 200, "alive whatever the storage does");
        let is_ready = json(&body)["status"] == "ready";
        // Sent after the status request: the server may have become ready in between.
        for path in ["/v0/entity?id=0007", "/v0/entities?start=0007&limit=1"] {
            match get(server, path) {
                (200, _, body) => assert!(body.ends_with(&value(7)), "{path}"),
                response => self.assert_recovering(path, response, is_ready),
            }
        }
        match get(server, "/health") {
            (200, _, _) => self.ready += 1,
            response => {
                self.assert_recovering("/health", response, is_ready);
                self.recovering += 1;
            }
        }
    }

    fn assert_recovering(
        &mut self,
        path: &str,
        (status, head, body): (u16, String, Vec<u8>),
        is_ready: bool,
    ) {
        let problem = json(&body);
        assert!(!is_ready && self.ready == 0, "{path}, though ready: {problem}");
        assert_eq!((status, &problem["type"]), (503, &"recovering".into()), "{path}: {problem}");
        assert!(head.contains("\r\nretry-after: "), "{path}: {head}");
        let per_cent = problem["recovery_per_cent"].as_u64().expect("progress");
        assert!(
            (self.per_cent..=100).contains(&per_cent),
            "{path}: {per_cent} after {}",
            self.per_cent
        );
        self.per_cent = per_cent;
    }
}

/// Status, head and body of a response; HTTP/1.0 gets a range without chunks.
fn get(server: &TestServer, path: &str) -> (u16, String, Vec<u8>) {
    let response = server.exchange(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes());
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(response[..end].to_vec()).expect("heads are ASCII");
    let status = head[9..12].parse().expect("a status");
    (status, head, response[end + 4..].to_vec())
}

fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}
