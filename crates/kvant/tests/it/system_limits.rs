//! Limits of the system on a running server: descriptors, file sizes, a moved directory.

use crate::connection::Connection;
use crate::kvant_command::TempDir;
use crate::server_process::{TestServer, serve_to_end_after};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;

/// One request on a connection that stays open.
fn exchange(client: &mut Connection, method: &str, target: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let head =
        format!("{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    client.send(&[head.as_bytes(), body].concat()).expect("the server takes the request");
    let response = client.receive().expect("the server responds");
    (response.status, response.body)
}

fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

/// Sets a limit of the running server; returns the previous one.
pub(crate) fn set_limit(
    server: &TestServer,
    resource: Resource,
    current: Option<u64>,
) -> Option<u64> {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current, maximum: getrlimit(resource).maximum };
    prlimit(pid, resource, limit).expect("the process is ours").current
}

/// The number of the server's next descriptor.
fn next_descriptor(server: &TestServer) -> u64 {
    let entries = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs");
    let open: Vec<u64> = entries
        .map(|entry| {
            let name = entry.expect("readable").file_name();
            name.to_str().and_then(|name| name.parse().ok()).expect("a number")
        })
        .collect();
    (0..).find(|number| !open.contains(number)).expect("numbers never end")
}

#[test]
fn a_shortage_of_descriptors_fences_nothing() {
    let dir = TempDir::new();
    let server = TestServer::start_with(&dir.path().join("data"), &["--sync", "always"]);
    let mut client = Connection::open(server.addr()).expect("the server listens");
    // Each step of a flush fails in turn: creating a file, syncing its name, opening it again.
    for spare in 0..6 {
        assert_eq!(exchange(&mut client, "PUT", "/v0/entity?id=before", b"1").0, 201);
        let next = next_descriptor(&server);
        let before = set_limit(&server, Resource::Nofile, Some(next + spare));
        let (status, body) = exchange(&mut client, "POST", "/v0/admin/flush", b"");
        if status != 200 {
            assert_eq!((status, &json(&body)["type"]), (500, &"io".into()), "{spare} spare");
        }
        let (status, body) = exchange(&mut client, "PUT", "/v0/entity?id=during", b"2");
        assert_eq!(status, 201, "{spare} spare: {}", String::from_utf8_lossy(&body));
        let (status, body) = exchange(&mut client, "GET", "/health", b"");
        assert_eq!(status, 200, "{spare} spare: {}", String::from_utf8_lossy(&body));
        set_limit(&server, Resource::Nofile, before);
        assert_eq!(exchange(&mut client, "POST", "/v0/admin/flush", b"").0, 200, "{spare} spare");
    }
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn with_64_descriptors_files_have_theirs_while_connections_are_full() {
    let dir = TempDir::new();
    let args = ["--sync", "always", "--selectors", "2", "--memory", "64MiB"];
    let server = TestServer::start_after("ulimit -n 64", &dir.path().join("data"), &args);
    let mut client = Connection::open(server.addr()).expect("the server listens");
    assert_eq!(exchange(&mut client, "PUT", "/v0/entity?id=first", b"v").0, 201);
    let mut storm: Vec<Connection> = (0..100)
        .map(|_| Connection::open(server.addr()).expect("the kernel completes it"))
        .collect();
    let is_full = |_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let stats = json(&exchange(&mut client, "GET", "/v0/stats", b"").1);
        let (open, most) =
            (&stats["server"]["connections_open"], &stats["server"]["connections_max"]);
        (open == most).then(|| most.as_u64().expect("a count"))
    };
    let connections_max = (0..10_000).find_map(is_full).expect("connections are accepted");
    assert!((4..64).contains(&connections_max), "{connections_max}");
    for round in 0..12 {
        for key in 0..20 {
            let target = format!("/v0/entity?id=k{key}");
            let value = format!("{round}");
            assert_eq!(
                exchange(&mut client, "PUT", &target, value.as_bytes()).0,
                201,
                "round {round}"
            );
        }
        let operation = ["flush", "flush", "compact"][round % 3];
        let (status, body) = exchange(&mut client, "POST", &format!("/v0/admin/{operation}"), b"");
        assert_eq!(status, 200, "round {round}: {}", String::from_utf8_lossy(&body));
    }
    let (status, body) = exchange(&mut client, "GET", "/health", b"");
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    // Connections that wait in the kernel are served once others close.
    let mut last = storm.pop().expect("a hundred");
    drop(storm);
    assert_eq!(exchange(&mut last, "GET", "/v0/entity?id=k3", b""), (200, b"11".to_vec()));
    let ended = server.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for event in ["accept_failed", "flush_failed", "compaction_failed"] {
        assert!(!ended.log.iter().any(|line| line.contains(event)), "{ended:?}");
    }
}

#[test]
fn too_few_descriptors_are_rejected_with_what_to_do() {
    let dir = TempDir::new();
    let rejected =
        serve_to_end_after("ulimit -n 64", &dir.path().join("data"), &["--selectors", "30"]);
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    let line = rejected.line("start_failed");
    assert!(line.contains("ulimit") && line.contains("--selectors"), "{line}");
}

#[test]
fn a_file_over_the_size_limit_is_an_error_and_not_the_end() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let mut client = Connection::open(server.addr()).expect("the server listens");
    assert_eq!(exchange(&mut client, "PUT", "/v0/entity?id=first", b"v").0, 201);
    let before = set_limit(&server, Resource::Fsize, Some(1 << 20));
    let value = vec![b'v'; 256 << 10];
    let rejected = (0..8)
        .map(|_| exchange(&mut client, "PUT", "/v0/entity?id=k", &value))
        .find(|(status, _)| *status != 201);
    let (status, body) = rejected.expect("2 MiB do not fit into a log of 1 MiB");
    assert_eq!((status, &json(&body)["type"]), (500, &"io".into()));
    assert_eq!(exchange(&mut client, "GET", "/v0/entity?id=first", b"").0, 200);
    let (status, body) = exchange(&mut client, "GET", "/health", b"");
    assert_eq!((status, &json(&body)["writes"]), (503, &"failing".into()));
    set_limit(&server, Resource::Fsize, before);
    assert_eq!(exchange(&mut client, "PUT", "/v0/entity?id=k", &value).0, 201);
    assert_eq!(exchange(&mut client, "GET", "/health", b"").0, 200);
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn health_reports_a_data_directory_that_was_moved_away() {
    let dir = TempDir::new();
    let (data, moved) = (dir.path().join("data"), dir.path().join("moved"));
    let server = TestServer::start_with(&data, &["--memory", "64MiB"]);
    let mut client = Connection::open(server.addr()).expect("the server listens");
    assert_eq!(exchange(&mut client, "PUT", "/v0/entity?id=first", b"v").0, 201);
    std::fs::rename(&data, &moved).expect("the directory is ours");
    let value = vec![b'v'; 4 << 20];
    // Open log files accept a few more writes.
    let rejected = (0..50)
        .map(|_| exchange(&mut client, "PUT", "/v0/entity?id=k", &value))
        .find(|(status, _)| *status != 201);
    let (status, body) = rejected.expect("200 MiB do not fit into memory");
    assert_eq!((status, &json(&body)["type"]), (500, &"io".into()));
    let (status, body) = exchange(&mut client, "GET", "/health", b"");
    let problem = json(&body);
    assert_eq!((status, &problem["type"]), (503, &"writes-failing".into()));
    let cause = problem["cause"].as_str().expect("a cause");
    assert!(cause.contains("cannot create"), "{cause}");
    std::fs::rename(&moved, &data).expect("the directory is ours");
    let is_written = |_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        exchange(&mut client, "PUT", "/v0/entity?id=k", &value).0 == 201
    };
    assert!((0..1_000).any(is_written), "writes do not heal");
    let (status, body) = exchange(&mut client, "GET", "/health", b"");
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    assert_eq!(server.stop().code, Some(0));
}
