//! The memory of a server under attack stays within its budget plus a constant, and small requests
//! are still served.

use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use kvant_env::posix::raise_descriptor_limit;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MEMORY: &str = "64MiB";
/// The budget, and the memory outside it: half of the bound in `docs/architecture.md` ("Memory").
const RESIDENT_BYTES_MAX: usize = (64 + 32) << 20;
/// Far longer than an attack takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A figure of the kernel about the memory of a process, in bytes.
fn memory_figure(server: &TestServer, name: &str) -> usize {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.expect("the kernel reports it").parse::<usize>().expect("a number") << 10
}

fn most_resident_bytes(server: &TestServer) -> usize {
    memory_figure(server, "VmHWM")
}

fn resident_bytes(server: &TestServer) -> usize {
    memory_figure(server, "VmRSS")
}

#[track_caller]
fn assert_within_budget(server: &TestServer) {
    let bytes = most_resident_bytes(server);
    println!("at most {} MiB resident", bytes >> 20);
    assert!(bytes <= RESIDENT_BYTES_MAX, "{bytes} bytes were resident");
}

/// CPU time of a process, in clock ticks of 10 ms.
fn cpu_ticks(server: &TestServer) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("it runs");
    let (_, rest) = stat.rsplit_once(')').expect("the kernel's format");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    [11, 12].map(|i: usize| fields[i].parse::<u64>().expect("a number")).iter().sum()
}

fn connect(server: &TestServer) -> TcpStream {
    let stream = TcpStream::connect(server.addr()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

/// Sends `bytes` on all connections concurrently, reading nothing, until the server has received
/// them, has closed the connection, or stops reading.
fn send_to_all(connections: &[TcpStream], bytes: &[u8]) {
    let mut sent_bytes = vec![0; connections.len()];
    let mut progressed_at = Instant::now();
    while progressed_at.elapsed() < Duration::from_millis(300)
        && sent_bytes.iter().any(|sent| *sent < bytes.len())
    {
        for (mut stream, sent) in connections.iter().zip(&mut sent_bytes) {
            stream.set_nonblocking(true).expect("a socket");
            match stream.write(&bytes[*sent..]) {
                Ok(count) if count > 0 => {
                    *sent += count;
                    progressed_at = Instant::now();
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Rejected and closed.
                Err(_) => *sent = bytes.len(),
            }
        }
    }
}

/// Sends a request on an open connection and checks the status.
fn exchange(stream: &mut TcpStream, request: &[u8], status: &str) {
    stream.write_all(request).expect("the server takes it");
    let mut response = [0; 4096];
    let count = stream.read(&mut response).expect("a response");
    let response = String::from_utf8_lossy(&response[..count]);
    assert_eq!(response.split(' ').nth(1), Some(status), "{response}");
}

fn put(stream: &mut TcpStream, key: &str, value: &[u8]) {
    let head = format!(
        "PUT /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        value.len()
    );
    exchange(stream, &[head.as_bytes(), value].concat(), "201");
}

/// Incompressible bytes.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(len);
    bytes
}

#[test]
fn endless_heads_stay_within_the_memory() {
    raise_descriptor_limit(u64::MAX);
    let dir = TempDir::new();
    let server = TestServer::start_with(dir.path(), &["--memory", MEMORY]);
    for header_count in [49, 7] {
        let connections: Vec<TcpStream> = (0..500).map(|_| connect(&server)).collect();
        let headers: String =
            (0..header_count).map(|i| format!("H{i:02}: {}\r\n", "v".repeat(7_993))).collect();
        let head = format!("GET /v0/status HTTP/1.1\r\nHost: x\r\n{headers}");
        send_to_all(&connections, head.as_bytes());
        exchange(&mut connect(&server), b"GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n", "200");
    }
    assert_within_budget(&server);
}

#[test]
fn chunked_uploads_stay_within_the_memory() {
    raise_descriptor_limit(u64::MAX);
    let dir = TempDir::new();
    let server = TestServer::start_with(dir.path(), &["--memory", MEMORY]);
    let connections: Vec<TcpStream> = (0..1_500).map(|_| connect(&server)).collect();
    let mut upload =
        b"PUT /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000\r\n"
            .to_vec();
    upload.extend_from_slice(&noise(0x40000, 1));
    send_to_all(&connections, &upload);
    put(&mut connect(&server), "short", b"value");
    assert_within_budget(&server);
}

#[test]
fn flushed_memtables_and_a_range_stay_within_the_memory() {
    let dir = TempDir::new();
    let server = TestServer::start_with(dir.path(), &["--memory", MEMORY, "--sync", "os"]);
    let mut stream = connect(&server);
    for i in 0..1_500 {
        put(&mut stream, &format!("k{i:05}"), &noise(100_000, i));
    }
    let all = server
        .exchange(b"GET /v0/entities?start=k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(all.len() > 150_000_000);
    assert_within_budget(&server);
}

#[test]
fn unread_long_values_cost_neither_memory_nor_time() {
    raise_descriptor_limit(u64::MAX);
    let dir = TempDir::new();
    let server = TestServer::start_with(dir.path(), &["--memory", MEMORY]);
    let mut other = connect(&server);
    put(&mut other, "long", &noise(16 << 20, 1));
    let connections: Vec<TcpStream> = (0..1_000).map(|_| connect(&server)).collect();
    let before = cpu_ticks(&server);
    let get = b"GET /v0/entity?id=long HTTP/1.1\r\nHost: x\r\n\r\n";
    send_to_all(&connections, &get.repeat(50));
    // Most of them wait for memory.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(1) {
        put(&mut other, "short", b"value");
        exchange(&mut other, b"GET /v0/status HTTP/1.1\r\nHost: x\r\n\r\n", "200");
        std::thread::sleep(Duration::from_millis(10));
    }
    let ticks = cpu_ticks(&server) - before;
    println!("{ticks} ticks of CPU time");
    // Copying the value once per request would take far more.
    assert!(ticks < 50, "{ticks} ticks of 10 ms");
    assert_within_budget(&server);
}

/// The allocator keeps what it is given back, here the cached blocks of tables that a compaction
/// replaced. It goes back once nothing has taken it again for a minute.
#[test]
fn a_cache_that_is_freed_returns_to_the_system() {
    const VALUE_BYTES: usize = 7_000;
    const RECORDS: u64 = 25_000;
    let dir = TempDir::new();
    let server = TestServer::start_with(dir.path(), &["--memory", "256MiB", "--sync", "os"]);
    let mut stream = connect(&server);
    for i in 0..RECORDS {
        put(&mut stream, &format!("k{i:05}"), &noise(VALUE_BYTES, i));
    }
    let done = |request: &str| {
        let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let response = server.exchange(request.as_bytes());
        assert!(response.starts_with(b"HTTP/1.1 2"));
        response.len()
    };
    done("POST /v0/admin/compact");
    assert!(done("GET /v0/entities?start=k") > VALUE_BYTES * RECORDS as usize);
    let full_bytes = resident_bytes(&server);
    assert!(full_bytes > 150 << 20, "the cache holds the values: {full_bytes} bytes resident");
    // Keys of every table.
    for i in (0..RECORDS).step_by(1000) {
        put(&mut stream, &format!("k{i:05}"), b"short");
    }
    done("POST /v0/admin/compact");
    let deadline = Instant::now() + 2 * PATIENCE;
    while resident_bytes(&server) > 64 << 20 {
        assert!(Instant::now() < deadline, "{full_bytes} bytes, then {}", resident_bytes(&server));
        std::thread::sleep(Duration::from_millis(50));
    }
}
