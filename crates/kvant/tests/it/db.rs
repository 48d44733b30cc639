//! `kvant db`: offline tools on a directory that a real server has written.

use crate::kvant_command::{Finished, TempDir, kvant, run};
use crate::server_process::{TestServer, serve_to_end};
use std::path::{Path, PathBuf};

const RECORDS: &str = "a = hello\nb = \\x00\\xff\n";

/// A database with [`RECORDS`] and a deleted key.
fn database() -> TempDir {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path());
    for (method, key, value) in
        [("PUT", "b", &b"\x00\xff"[..]), ("PUT", "gone", b"x"), ("PUT", "a", b"hello")]
    {
        request(&server, method, key, value);
    }
    request(&server, "DELETE", "gone", b"");
    assert_eq!(server.stop().code, Some(0));
    dir
}

pub(crate) fn request(server: &TestServer, method: &str, key: &str, value: &[u8]) {
    let length = value.len();
    let head = format!(
        "{method} /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    let response = server.exchange(&[head.as_bytes(), value].concat());
    assert!(response.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&response));
}

pub(crate) fn db(args: &[&str], dir: &Path) -> Finished {
    run(kvant().arg("db").args(args).arg(dir))
}

/// Runs a command that must succeed; returns its output.
pub(crate) fn db_done(args: &[&str], dir: &Path) -> String {
    let done = db(args, dir);
    assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
    done.stdout
}

pub(crate) fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("readable");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

pub(crate) fn flip_a_bit(file: &Path, at: impl Fn(usize) -> usize) {
    let mut contents = std::fs::read(file).expect("readable");
    let at = at(contents.len());
    contents[at] ^= 1;
    std::fs::write(file, contents).expect("writable");
}

#[test]
fn verify_dump_and_stats_of_a_whole_database() {
    let dir = database();
    let verified = db_done(&["verify"], dir.path());
    assert!(verified.ends_with("\nwhole\n"), "{verified}");
    assert_eq!(db_done(&["dump"], dir.path()), RECORDS);
    assert_eq!(db_done(&["dump", "--records"], dir.path()), RECORDS);
    assert!(!db_done(&["dump", "--manifest"], dir.path()).is_empty());
    let stats: serde_json::Value =
        serde_json::from_str(&db_done(&["stats"], dir.path())).expect("JSON");
    assert!(stats["levels"].is_array(), "{stats}");
}

#[test]
fn compact_leaves_the_records_in_one_table() {
    let dir = database();
    db_done(&["compact", "--memory", "64MiB", "--compression", "zstd"], dir.path());
    let tables = files(dir.path(), "sst");
    assert_eq!(tables.len(), 1, "{tables:?}");
    assert_eq!(db_done(&["dump"], dir.path()), RECORDS);
    let number = tables[0].file_stem().and_then(|stem| stem.to_str()).expect("digits");
    let table = db_done(&["dump", "--table", number], dir.path());
    assert!(table.contains("hello") && !table.contains("gone"), "{table}");
}

#[test]
fn a_checkpoint_is_restored_and_served() {
    let dir = database();
    let copies = TempDir::new();
    // Hard links need one file system: both are in the target directory.
    let (checkpoint, restored) = (copies.path().join("checkpoint"), copies.path().join("restored"));
    let done = run(kvant().args(["db", "checkpoint"]).arg(dir.path()).arg(&checkpoint));
    assert_eq!(done.code, Some(0), "{done:?}");
    let again = run(kvant().args(["db", "checkpoint"]).arg(dir.path()).arg(&checkpoint));
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(db_done(&["verify"], &checkpoint).ends_with("\nwhole\n"));

    let done = run(kvant().args(["db", "restore"]).arg(&checkpoint).arg(&restored));
    assert_eq!(done.code, Some(0), "{done:?}");
    let server = TestServer::start(&restored);
    let response =
        server.exchange(b"GET /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(response.ends_with(b"\r\n\r\nhello"));
}

#[test]
fn every_command_is_rejected_while_a_server_owns_the_directory() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path());
    let owner = server.pid().to_string();
    let other = TempDir::new();
    for command in ["verify", "repair", "dump", "stats", "compact", "checkpoint", "restore"] {
        let mut kvant = kvant();
        kvant.args(["db", command]).arg(dir.path());
        if ["checkpoint", "restore"].contains(&command) {
            kvant.arg(other.path().join("copy"));
        }
        let rejected = run(&mut kvant);
        assert_eq!(rejected.code, Some(1), "{command}: {rejected:?}");
        assert!(rejected.stderr.contains(&owner), "{command}: {rejected:?}");
        assert!(!other.path().join("copy").exists(), "{command}");
    }
}

#[test]
fn a_misspelt_directory_is_rejected_and_not_created() {
    let dir = TempDir::new();
    let nowhere = dir.path().join("nowhere");
    let empty = TempDir::new();
    for command in ["verify", "repair", "dump", "stats", "compact"] {
        let rejected = db(&[command], &nowhere);
        assert_eq!(rejected.code, Some(1), "{command}: {rejected:?}");
        assert!(rejected.stderr.contains("nowhere"), "{command}: {rejected:?}");
        assert!(!nowhere.exists(), "{command}");
    }
    for command in ["repair", "dump", "stats", "compact"] {
        let rejected = db(&[command], empty.path());
        assert_eq!(rejected.code, Some(1), "{command}: {rejected:?}");
        assert_eq!(std::fs::read_dir(empty.path()).expect("readable").count(), 0, "{command}");
    }
}

#[test]
fn a_damaged_table_is_found_and_repaired() {
    let dir = database();
    db_done(&["compact"], dir.path());
    let table = files(dir.path(), "sst").pop().expect("one table");
    // In the first block: its records are lost, the rest of the table is not.
    flip_a_bit(&table, |_| 5);

    let damaged = db(&["verify"], dir.path());
    assert_eq!(damaged.code, Some(1), "{damaged:?}");
    let name = table.file_name().and_then(|name| name.to_str()).expect("ASCII");
    let line = damaged.stdout.lines().find(|line| line.starts_with("damaged: ")).expect("damage");
    assert!(line.contains(name) && line.contains(" at byte "), "{line}");

    let repaired = db(&["repair"], dir.path());
    assert_eq!(repaired.code, Some(3), "what the block held is lost: {repaired:?}");
    for word in ["damaged: ", "moved: ", "lost: "] {
        assert!(repaired.stdout.contains(word), "{word}: {repaired:?}");
    }
    assert!(db_done(&["verify"], dir.path()).ends_with("\nwhole\n"));
}

#[test]
fn a_server_refuses_a_damaged_manifest_and_says_what_to_do() {
    let dir = database();
    let entries = std::fs::read_dir(dir.path()).expect("readable");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST-");
    let manifest = paths.filter(is_manifest).max().expect("a manifest");
    // In the first edit, which was synced long ago.
    flip_a_bit(&manifest, |len| len.min(40) - 1);

    let rejected = serve_to_end(dir.path(), &[]);
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    let line = rejected.line("open_failed");
    for part in ["file=", "MANIFEST-", "offset_bytes=", "kvant db repair"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let repaired = db(&["repair"], dir.path());
    assert_eq!(repaired.code, Some(3), "what the manifest knew is lost: {repaired:?}");
    assert_eq!(TestServer::start(dir.path()).stop().code, Some(0));
}
