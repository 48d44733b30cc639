//! The cost of idle connections.

use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use kvant_env::posix::raise_descriptor_limit;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// `KVANT_IDLE_CONNECTIONS` overrides the number.
const COUNT_DEFAULT: usize = 2_000;

/// One request for the fast path, and one for hyper.
const PLAIN: &str = "GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n";
const OTHER: &str = "GET /v0/entities?start=a HTTP/1.1\r\nHost: x\r\n\r\n";

fn count() -> usize {
    let count = std::env::var("KVANT_IDLE_CONNECTIONS").ok();
    count.map_or(COUNT_DEFAULT, |count| count.parse().expect("a number"))
}

/// Resident memory of a process in bytes, without the kernel's socket buffers.
fn resident_bytes(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).expect("the kernel reports it");
    kib.parse::<usize>().expect("a number") << 10
}

/// Sends a request on each connection and reads the response.
fn exchange(connections: &mut [TcpStream], request: &str, end: &str) {
    for stream in connections {
        stream.write_all(request.as_bytes()).expect("the server takes it");
        let mut response = Vec::new();
        while !response.ends_with(end.as_bytes()) {
            let mut bytes = [0; 1024];
            let read_bytes = stream.read(&mut bytes).expect("a response");
            assert!(read_bytes > 0, "closed: {}", response.escape_ascii());
            response.extend_from_slice(&bytes[..read_bytes]);
        }
    }
}

/// The share of connections in the server's memory budget.
fn counted_bytes(stream: &mut TcpStream) -> usize {
    let mut stats = Vec::new();
    stream
        .write_all(b"GET /v0/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("the server takes it");
    stream.read_to_end(&mut stats).expect("a response");
    let head_bytes = stats.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    let stats: serde_json::Value = serde_json::from_slice(&stats[head_bytes..]).expect("JSON");
    let bytes = stats["server"]["memory_bytes"]["connections"].as_u64();
    usize::try_from(bytes.expect("a figure")).expect("it fits")
}

#[test]
fn an_idle_connection_holds_a_few_kib() {
    let count = count();
    raise_descriptor_limit(u64::MAX);
    let dir = TempDir::new();
    let server = TestServer::start_with(
        dir.path(),
        &["--head-wait-max", "200ms", "--connection-idle-max", "10m"],
    );
    let connect = || {
        let stream = TcpStream::connect(server.addr()).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
        stream
    };
    // The allocations of the first requests are not counted.
    exchange(&mut [connect()], PLAIN, "}");
    exchange(&mut [connect()], OTHER, "0\r\n\r\n");
    let before = resident_bytes(server.pid());
    let mut connections: Vec<TcpStream> = (0..count).map(|_| connect()).collect();
    exchange(&mut connections, PLAIN, "}");
    let each = |bytes: usize| bytes.saturating_sub(before) / count;
    let plain_bytes = each(resident_bytes(server.pid()));
    exchange(&mut connections, OTHER, "0\r\n\r\n");
    let hyper_bytes = each(resident_bytes(server.pid()));
    while counted_bytes(&mut connect()) > count * (5 << 10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let rested_bytes = each(resident_bytes(server.pid()));
    println!(
        "{count} idle connections: {plain_bytes} bytes each after a plain request, {hyper_bytes} after one \
         through hyper, {rested_bytes} when idle"
    );
    assert!(plain_bytes < 16 << 10, "{plain_bytes}");
    // The allocator may keep free memory.
    assert!(hyper_bytes < 64 << 10, "{hyper_bytes}");
    exchange(&mut connections, PLAIN, "}");
}
