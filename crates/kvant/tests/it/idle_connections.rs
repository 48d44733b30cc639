//! What connections cost that do nothing.

use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// `KVANT_IDLE_CONNECTIONS` is another number.
const COUNT_DEFAULT: usize = 2_000;

/// Answered without hyper, and by hyper.
const PLAIN: &str = "GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n";
const OTHER: &str = "GET /v0/entities?start=a HTTP/1.1\r\nHost: x\r\n\r\n";

fn count() -> usize {
    let count = std::env::var("KVANT_IDLE_CONNECTIONS").ok();
    count.map_or(COUNT_DEFAULT, |count| count.parse().expect("a number"))
}

/// Lets this process have as many connections as the system allows.
pub(crate) fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised)
        .expect("up to the hard limit");
}

/// Memory of a process that is in RAM, in bytes. The kernel's buffers of its sockets are not in it.
fn resident_bytes(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).expect("the kernel tells");
    kib.parse::<usize>().expect("a number") << 10
}

/// Sends a request on each connection and reads a part of its answer that is all of it.
fn ask(connections: &mut [TcpStream], request: &str, end: &str) {
    for stream in connections {
        stream.write_all(request.as_bytes()).expect("the server takes it");
        let mut answer = Vec::new();
        while !answer.ends_with(end.as_bytes()) {
            let mut bytes = [0; 1024];
            let read_bytes = stream.read(&mut bytes).expect("an answer");
            assert!(read_bytes > 0, "closed: {}", answer.escape_ascii());
            answer.extend_from_slice(&bytes[..read_bytes]);
        }
    }
}

/// The figure of the server's memory budget for its connections.
fn counted_bytes(stream: &mut TcpStream) -> usize {
    let mut stats = Vec::new();
    stream
        .write_all(b"GET /v0/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("the server takes it");
    stream.read_to_end(&mut stats).expect("an answer");
    let head_bytes = stats.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    let stats: serde_json::Value = serde_json::from_slice(&stats[head_bytes..]).expect("JSON");
    let bytes = stats["server"]["memory_bytes"]["connections"].as_u64();
    usize::try_from(bytes.expect("a figure")).expect("it fits")
}

#[test]
fn an_idle_connection_holds_a_few_kib() {
    let count = count();
    raise_descriptor_limit();
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
    // What the first requests of all allocate is not counted.
    ask(&mut [connect()], PLAIN, "}");
    ask(&mut [connect()], OTHER, "0\r\n\r\n");
    let before = resident_bytes(server.pid());
    let mut connections: Vec<TcpStream> = (0..count).map(|_| connect()).collect();
    ask(&mut connections, PLAIN, "}");
    let each = |bytes: usize| bytes.saturating_sub(before) / count;
    let plain_bytes = each(resident_bytes(server.pid()));
    ask(&mut connections, OTHER, "0\r\n\r\n");
    let hyper_bytes = each(resident_bytes(server.pid()));
    while counted_bytes(&mut connect()) > count * (5 << 10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let rested_bytes = each(resident_bytes(server.pid()));
    println!(
        "{count} idle connections: {plain_bytes} bytes each after a plain request, {hyper_bytes} after one that hyper \
         answered, {rested_bytes} when they rest"
    );
    assert!(plain_bytes < 16 << 10, "{plain_bytes}");
    // The allocator need not give back to the system what is free.
    assert!(hyper_bytes < 64 << 10, "{hyper_bytes}");
    ask(&mut connections, PLAIN, "}");
}
