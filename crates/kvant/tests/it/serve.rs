//! `kvant serve` as a process: start, signals, errors, exit codes.

use crate::kvant_command::TempDir;
use crate::server_process::{TestServer, exchange, serve_to_end};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

const PUT: &[u8] =
    b"PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
const GET: &[u8] = b"GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
const STATUS: &[u8] = b"GET /v0/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

fn assert_status(response: &[u8], status: &str) {
    let head = format!("HTTP/1.1 {status} ");
    assert!(response.starts_with(head.as_bytes()), "{}", String::from_utf8_lossy(response));
}

#[test]
fn a_value_survives_a_restart() {
    let dir = TempDir::new();
    let data = dir.path().join("data");
    for (signal, put) in [("TERM", true), ("INT", false)] {
        let server = TestServer::start(&data);
        assert_status(&server.exchange(STATUS), "200");
        if put {
            assert_status(&server.exchange(PUT), "201");
        }
        let response = server.exchange(GET);
        assert_status(&response, "200");
        assert!(response.ends_with(b"\r\n\r\nhello"));
        server.signal(signal);
        let ended = server.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.line("stopping").contains(&format!("signal=SIG{signal}")), "{ended:?}");
        for event in ["starting", "settings", "listening", "recovered", "ready", "stopped"] {
            ended.line(event);
        }
    }
}

#[test]
fn the_memory_engine_says_that_nothing_survives_and_writes_no_file() {
    let dir = TempDir::new();
    let data = dir.path().join("data");
    let server = TestServer::start_with(&data, &["--engine", "memory"]);
    assert_status(&server.exchange(PUT), "201");
    assert!(server.exchange(GET).ends_with(b"\r\n\r\nhello"));
    let health =
        server.exchange(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let health = String::from_utf8(health).expect("text");
    assert!(health.contains(r#""persistence":"none"#), "{health}");
    assert!(!data.exists());
    assert!(server.stop().line("not_persistent").contains("engine=memory"));
    let server = TestServer::start_with(&data, &["--engine", "memory"]);
    assert_status(&server.exchange(GET), "404");
}

#[test]
fn a_value_survives_a_kill() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path());
    assert_status(&server.exchange(PUT), "201");
    server.kill();
    assert!(TestServer::start(dir.path()).exchange(GET).ends_with(b"\r\n\r\nhello"));
}

#[test]
fn a_second_server_on_the_directory_is_rejected_with_the_owner() {
    let dir = TempDir::new();
    let owner = TestServer::start(dir.path());
    let second = serve_to_end(dir.path(), &[]);
    assert_eq!(second.code, Some(1), "{second:?}");
    let line = second.line("open_failed");
    assert!(line.contains(&owner.pid().to_string()), "{line}");
    assert_status(&owner.exchange(STATUS), "200");
}

#[test]
fn an_address_in_use_is_rejected() {
    let dir = TempDir::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = taken.local_addr().expect("bound").to_string();
    let rejected = serve_to_end(dir.path(), &["--admin-listen", &addr]);
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    let line = rejected.line("start_failed");
    assert!(line.contains(&addr), "{line}");
}

/// The value of a field of `/proc/PID/.../status`.
fn status_field(path: &Path, field: &str) -> String {
    let status = std::fs::read_to_string(path).expect("the kernel reports it");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.expect("every thread has this field").trim_start_matches(':').trim().to_string()
}

/// The CPUs of each selector thread, by number.
fn selector_cpus(pid: u32) -> Vec<String> {
    let mut cpus = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs") {
        let status = thread.expect("readable").path().join("status");
        let name = status_field(&status, "Name");
        if let Some(index) = name.strip_prefix("selector-") {
            cpus.push((index.to_string(), status_field(&status, "Cpus_allowed_list")));
        }
    }
    cpus.sort();
    cpus.into_iter().map(|(_, cpus)| cpus).collect()
}

#[test]
fn selectors_are_bound_to_their_cpus_in_turn() {
    let dir = TempDir::new();
    let all = status_field(Path::new("/proc/self/status"), "Cpus_allowed_list");
    let first = all.split(['-', ',']).next().expect("some CPU").to_string();
    let last = all.split(['-', ',']).next_back().expect("some CPU").to_string();
    let list = format!("{last},{first}");
    let server =
        TestServer::start_with(dir.path(), &["--selectors", "3", "--selector-cpus", &list]);
    assert_eq!(selector_cpus(server.pid()), [last.as_str(), &first, &last]);
    // Threads that a selector starts for blocking work may run on all CPUs, as other threads do.
    let mut threads = 0;
    let flush = b"POST /v0/admin/flush HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_status(&server.exchange(flush), "200");
    for thread in std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs") {
        let status = thread.expect("readable").path().join("status");
        if !status_field(&status, "Name").starts_with("selector-") {
            assert_eq!(status_field(&status, "Cpus_allowed_list"), all, "{}", status.display());
            threads += 1;
        }
    }
    assert!(threads > 1);
    assert_eq!(server.stop().code, Some(0));

    let unbound = TestServer::start_with(dir.path(), &["--selectors", "2"]);
    assert_eq!(selector_cpus(unbound.pid()), [all.clone(), all]);
}

#[test]
fn a_cpu_that_does_not_exist_is_rejected_with_its_number() {
    let dir = TempDir::new();
    let rejected = serve_to_end(dir.path(), &["--selector-cpus", "1023"]);
    assert_eq!(rejected.code, Some(2), "{rejected:?}");
    assert!(
        rejected.log.iter().any(|line| line.contains("flag --selector-cpus: CPU 1023 ")),
        "{rejected:?}"
    );
}

#[test]
fn a_data_directory_that_is_a_file_is_rejected() {
    let dir = TempDir::new();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory").expect("writable");
    let rejected = serve_to_end(&file, &[]);
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.line("open_failed").contains(&file.display().to_string()), "{rejected:?}");
}

#[test]
fn the_operator_api_has_its_own_listener() {
    let dir = TempDir::new();
    let server = TestServer::start_with(dir.path(), &["--admin-listen", "127.0.0.1:0"]);
    let admin_addr = server.admin_addr().expect("logged");
    assert_ne!(admin_addr, server.addr());
    assert_status(
        &exchange(admin_addr, b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
        "200",
    );
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_second_signal_does_not_wait_for_requests() {
    let dir = TempDir::new();
    let mut server = TestServer::start_with(dir.path(), &["--stop-wait-max", "10m"]);
    let mut half = TcpStream::connect(server.addr()).expect("the server listens");
    let head =
        b"PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    half.write_all(head).expect("taken");
    // After `100 Continue` the request is in flight.
    let mut interim = [0; 12];
    half.read_exact(&mut interim).expect("an interim response");
    assert_eq!(&interim, b"HTTP/1.1 100");
    server.signal("TERM");
    server.wait_for_event("stopping");
    server.signal("INT");
    let ended = server.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.line("stopped_at_once").contains("signal=SIGINT"), "{ended:?}");
}

#[test]
fn a_request_in_flight_is_finished_before_the_end() {
    let dir = TempDir::new();
    let mut server = TestServer::start(dir.path());
    let mut half = TcpStream::connect(server.addr()).expect("the server listens");
    let head =
        b"PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    half.write_all(head).expect("taken");
    let mut interim = [0; 25];
    half.read_exact(&mut interim).expect("an interim response");
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.signal("TERM");
    server.wait_for_event("stopping");
    half.write_all(b"hello").expect("taken");
    let mut response = Vec::new();
    half.read_to_end(&mut response).expect("a response and the end");
    assert_status(&response, "201");
    assert_eq!(server.wait().code, Some(0));
    assert!(TestServer::start(dir.path()).exchange(GET).ends_with(b"\r\n\r\nhello"));
}

#[test]
fn json_log_lines_are_objects() {
    let dir = TempDir::new();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory").expect("writable");
    let ended = serve_to_end(&file, &["--log-format", "json"]);
    let events: Vec<serde_json::Value> = ended
        .log
        .iter()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    let listening = events.iter().find(|event| event["event"] == "listening").expect("listening");
    assert!(
        listening["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")),
        "{listening}"
    );
    assert_eq!(listening["severity"], "info");
    let failed = events.last().expect("events");
    assert_eq!((&failed["event"], &failed["severity"]), (&"open_failed".into(), &"error".into()));
}
