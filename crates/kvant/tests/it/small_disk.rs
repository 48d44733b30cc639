//! A file system so small that a server fills it, and what clients do there.
//!
//! It has to be mounted: tests that may not do that pass with a message, and leave the question to
//! the engine's tests on a simulated disk.

use crate::connection::{Answer, Connection};
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
/// Requests that are sent before the first answer is read.
const PIPELINED: usize = 64;
/// Bound on the wait for space to return.
const HEAL_MAX: Duration = Duration::from_secs(60);

/// A file system of its own, gone with its contents when dropped.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    /// One in memory, or what `KVANT_BRIM_FS` names.
    pub(crate) fn mount(mebibytes: u64) -> Option<SmallDisk> {
        let dir = TempDir::new();
        let fs = std::env::var("KVANT_BRIM_FS").unwrap_or_else(|_| "tmpfs".to_string());
        let mut mount = Command::new("mount");
        if fs == "tmpfs" {
            let size = format!("size={mebibytes}m");
            mount.args(["-t", "tmpfs", "-o", &size, "kvant-test"]);
        } else {
            // Gone when it is unmounted, for nothing else holds it then.
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

    /// Another program takes whatever becomes free, until `is_over`.
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

    /// Another program takes all that is left.
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
        fs::remove_file(self.0.path().join("filler")).expect("the filler is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: not even a process that a failed test left keeps it.
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

pub(crate) fn ask(connection: &mut Connection, request: &[u8]) -> Answer {
    connection.send(request).expect("the server takes requests");
    connection.receive().expect("the server answers")
}

/// Puts records until one is refused for want of space.
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
            let answer = connection.receive().expect("an answer");
            match answer.status {
                201 => drop(records.insert(key, value)),
                507 => is_full = true,
                status => panic!("a put was answered {status}"),
            }
        }
    }
}

/// Deletes these, all of which must be accepted.
pub(crate) fn delete(connection: &mut Connection, keys: &[String]) {
    for keys in keys.chunks(PIPELINED) {
        let requests: Vec<u8> = keys.iter().flat_map(|key| request("DELETE", key, b"")).collect();
        connection.send(&requests).expect("sent");
        for _ in keys {
            let answer = connection.receive().expect("an answer");
            assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(&answer.body));
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

/// Waits until puts are accepted again: how long that took.
pub(crate) fn put_when_healed(connection: &mut Connection) -> Duration {
    let since = Instant::now();
    loop {
        let answer = ask(connection, &request("PUT", "healed", b"v"));
        match answer.status {
            201 => break,
            507 if since.elapsed() < HEAL_MAX => std::thread::sleep(Duration::from_millis(50)),
            status => panic!("puts are still answered {status}"),
        }
    }
    let took = since.elapsed();
    assert_eq!(ask(connection, &request("DELETE", "healed", b"")).status, 202);
    took
}

pub(crate) fn assert_records(connection: &mut Connection, records: &Records) {
    let found = connection.all_records().expect("a range is answered");
    let found: Records = found
        .into_iter()
        .map(|(key, value)| (String::from_utf8(key).expect("our keys"), value))
        .collect();
    assert!(found == *records, "{} records of {}", found.len(), records.len());
}

pub(crate) fn health(connection: &mut Connection) -> String {
    let answer = ask(connection, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(answer.status, 200);
    let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
    body["writes"].as_str().expect("whether writes succeed").to_string()
}

pub(crate) fn start(data: &Path) -> (TestServer, Connection) {
    let server = TestServer::start_with(data, &MEMORY);
    let connection = Connection::open(server.addr()).expect("the server listens");
    (server, connection)
}
