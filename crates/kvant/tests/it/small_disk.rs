//! A file system small enough for a server to fill, and the requests of its clients.
//!
//! It has to be mounted. Tests that lack the permission pass with a message; the engine's tests on
//! a simulated disk cover the case.

use crate::connection::{Connection, Response};
use crate::kvant_command::TempDir;
use crate::server_process::TestServer;
use kvant_env::rng::Rng;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MEMORY: [&str; 2] = ["--memory", "64MiB"];
/// Requests that are sent before the first response is read.
const PIPELINED: usize = 64;
/// Longest wait for free space.
const HEAL_MAX: Duration = Duration::from_secs(60);

/// A file system of its own, unmounted and discarded when dropped.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    /// One in memory, or the one that `KVANT_BRIM_FS` names.
    pub(crate) fn mount(mebibytes: u64) -> Option<SmallDisk> {
        let dir = TempDir::new();
        let fs = std::env::var("KVANT_BRIM_FS").unwrap_or_else(|_| "tmpfs".to_string());
        let mut mount = Command::new("mount");
        if fs == "tmpfs" {
            let size = format!("size={mebibytes}m");
            mount.args(["-t", "tmpfs", "-o", &size, "kvant-test"]);
        } else {
            // Removed with the mount: nothing else refers to it.
            let image = dir.path().with_extension("img");
            let file = File::create(&image).expect("a file can be made");
            file.set_len(mebibytes << 20).expect("a sparse file");
            let made = Command::new(format!("mkfs.{fs}")).arg("-q").arg(&image).status();
            assert!(made.expect("mkfs exists").success());
            mount.args(["-o", "loop"]).arg(image);
        }
        let mounted = mount.arg(dir.path()).output();
        if fs != "tmpfs" {
            fs::remove_file(dir.path().with_extension("img")).expect("it was made");
        }
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(dir));
        }
        println!("not tested: no file system can be mounted here");
        None
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Takes all space that becomes free, as another program, until `is_over`.
    pub(crate) fn keep_filling(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            self.fill();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn filler(&self) -> File {
        let mut options = File::options();
        options.create(true).append(true);
        options.open(self.0.path().join("filler")).expect("a file can be made")
    }

    /// Takes all free space, as another program.
    pub(crate) fn fill(&self) {
        let mut file = self.filler();
        for piece_bytes in [1 << 20, 4096, 1] {
            let piece = vec![1; piece_bytes];
            let error = loop {
                if let Err(error) = file.write_all(&piece) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
    }

    pub(crate) fn free(&self) {
        fs::remove_file(self.0.path().join("filler")).expect("a filler");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, so that a process left by a failed test does not prevent it.
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            println!("{} stays mounted", self.0.path().display());
        }
    }
}

/// Keys and values that the server has acknowledged.
pub(crate) type Records = BTreeMap<String, Vec<u8>>;

/// Scattered over the key space.
pub(crate) fn key(number: u32) -> String {
    format!("{:08x}", number.wrapping_mul(0x9e37_79b1))
}

pub(crate) fn request(method: &str, key: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn exchange(connection: &mut Connection, request: &[u8]) -> Response {
    connection.send(request).expect("the server takes requests");
    connection.receive().expect("the server responds")
}

/// Puts records until one is rejected for lack of space.
pub(crate) fn fill(
    connection: &mut Connection,
    rng: &mut Rng,
    records: &mut Records,
    value_bytes: u64,
) {
    let mut is_full = false;
    let mut number = rng.below(1 << 31) as u32;
    while !is_full {
        let puts: Vec<_> = (0..PIPELINED)
            .map(|_| {
                number += 1;
                (key(number), rng.bytes(value_bytes as usize))
            })
            .collect();
        let requests: Vec<u8> =
            puts.iter().flat_map(|(key, value)| request("PUT", key, value)).collect();
        connection.send(&requests).expect("sent");
        for (key, value) in puts {
            let response = connection.receive().expect("a response");
            match response.status {
                201 => drop(records.insert(key, value)),
                507 => is_full = true,
                status => panic!("a put got {status}"),
            }
        }
    }
}

/// Deletes these; every delete must be accepted.
pub(crate) fn delete(connection: &mut Connection, keys: &[String]) {
    for keys in keys.chunks(PIPELINED) {
        let requests: Vec<u8> = keys.iter().flat_map(|key| request("DELETE", key, b"")).collect();
        connection.send(&requests).expect("sent");
        for _ in keys {
            let response = connection.receive().expect("a response");
            assert_eq!(response.status, 202, "{}", String::from_utf8_lossy(&response.body));
        }
    }
}

/// Deletes nine of ten records, but at most `count_max`.
pub(crate) fn delete_most(
    connection: &mut Connection,
    rng: &mut Rng,
    records: &mut Records,
    count_max: usize,
) {
    let most = records.keys().filter(|_| !rng.one_in(10));
    let gone: Vec<String> = most.take(count_max).cloned().collect();
    delete(connection, &gone);
    records.retain(|key, _| gone.binary_search(key).is_err());
}

/// Waits until puts are accepted again; returns the time that took.
pub(crate) fn put_when_healed(connection: &mut Connection) -> Duration {
    let since = Instant::now();
    loop {
        let response = exchange(connection, &request("PUT", "healed", b"v"));
        match response.status {
            201 => break,
            507 if since.elapsed() < HEAL_MAX => std::thread::sleep(Duration::from_millis(50)),
            status => panic!("puts still get {status}"),
        }
    }
    let took = since.elapsed();
    assert_eq!(exchange(connection, &request("DELETE", "healed", b"")).status, 202);
    took
}

pub(crate) fn assert_records(connection: &mut Connection, records: &Records) {
    let found = connection.all_records().expect("a response");
    let found: Records = found
        .into_iter()
        .map(|(key, value)| (String::from_utf8(key).expect("our keys"), value))
        .collect();
    assert!(found == *records, "{} records of {}", found.len(), records.len());
}

pub(crate) fn health(connection: &mut Connection) -> String {
    let response = exchange(connection, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(response.status, 200);
    let body: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    body["writes"].as_str().expect("whether writes succeed").to_string()
}

pub(crate) fn start(data: &Path) -> (TestServer, Connection) {
    let server = TestServer::start_with(data, &MEMORY);
    let connection = Connection::open(server.addr()).expect("the server listens");
    (server, connection)
}
