//! Data directories with swapped, truncated or lost files: what the operator sees, and what can be
//! saved.

use crate::db::{db, db_done, files, flip_a_bit, request};
use crate::kvant_command::{TempDir, kvant, run};
use crate::server_process::{TestServer, serve_to_end};
use std::fs;
use std::path::{Path, PathBuf};

const ALWAYS: [&str; 2] = ["--sync", "always"];

/// One run of a server that puts a value and stops cleanly.
fn put(dir: &Path, key: &str, value: &str) {
    let server = TestServer::start_with(dir, &ALWAYS);
    request(&server, "PUT", key, value.as_bytes());
    assert_eq!(server.stop().code, Some(0));
}

fn get(server: &TestServer, key: &str) -> String {
    let request =
        format!("GET /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let response = String::from_utf8_lossy(&server.exchange(request.as_bytes())).into_owned();
    let (head, body) = response.split_once("\r\n\r\n").expect("a response");
    match head.starts_with("HTTP/1.1 200") {
        true => body.to_string(),
        false => head.lines().next().expect("a status line").to_string(),
    }
}

/// The last log with a record.
fn last_log(dir: &Path) -> PathBuf {
    let mut logs = files(dir, "wal");
    logs.retain(|path| fs::metadata(path).expect("there").len() > 40);
    logs.pop().expect("a log")
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("ASCII")
}

#[test]
fn swapped_tables_are_rejected_by_verify_restore_and_serve_and_put_right_by_repair() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path());
    for (value, then) in [("old", "compact"), ("new", "flush")] {
        request(&server, "PUT", "key", value.as_bytes());
        let post = format!(
            "POST /v0/admin/{then} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        server.exchange(post.as_bytes());
    }
    assert_eq!(server.stop().code, Some(0));
    let tables = files(dir.path(), "sst");
    assert_eq!(tables.len(), 2, "{tables:?}");
    let aside = dir.path().join("aside");
    fs::rename(&tables[0], &aside).expect("renamed");
    fs::rename(&tables[1], &tables[0]).expect("renamed");
    fs::rename(&aside, &tables[1]).expect("renamed");

    let verified = db(&["verify"], dir.path());
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let other = TempDir::new();
    let copy = other.path().join("copy");
    let restored = run(kvant().args(["db", "restore"]).arg(dir.path()).arg(&copy));
    assert_eq!(restored.code, Some(1), "{restored:?}");
    assert!(!copy.exists());
    let rejected = serve_to_end(dir.path(), &[]);
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.line("open_failed").contains(".sst"), "{rejected:?}");

    let repaired = db_done(&["repair"], dir.path());
    assert!(repaired.ends_with("nothing is lost\n"), "{repaired}");
    assert_eq!(get(&TestServer::start(dir.path()), "key"), "new");
}

#[test]
fn a_log_that_vanished_is_named_and_recover_anyway_serves_the_rest() {
    let deleted = |log: &Path| fs::remove_file(log).expect("removed");
    let emptied = |log: &Path| fs::write(log, b"").expect("written");
    for vanish in [&deleted as &dyn Fn(&Path), &emptied] {
        for killed in [false, true] {
            let dir = TempDir::new();
            put(dir.path(), "first", "1");
            match killed {
                false => put(dir.path(), "second", "2"),
                true => {
                    let server = TestServer::start_with(dir.path(), &ALWAYS);
                    request(&server, "PUT", "second", b"2");
                    server.kill();
                }
            }
            let log = last_log(dir.path());
            vanish(&log);

            assert_eq!(db(&["verify"], dir.path()).code, Some(1), "killed: {killed}");
            let rejected = serve_to_end(dir.path(), &ALWAYS);
            assert_eq!(rejected.code, Some(1), "{rejected:?}");
            let line = rejected.line("open_failed");
            for part in [name_of(&log), "kvant db repair", "--recover-anyway"] {
                assert!(line.contains(part), "{part}: {line}");
            }

            let mut server =
                TestServer::start_listening(dir.path(), &["--sync", "always", "--recover-anyway"]);
            assert!(server.wait_for_event("lost").contains(name_of(&log)));
            server.wait_for_event("ready");
            assert_eq!(get(&server, "first"), "1");
            assert!(get(&server, "second").contains("404"));
            assert_eq!(server.stop().code, Some(0));
            assert!(db_done(&["verify"], dir.path()).ends_with("\nwhole\n"));
        }
    }
}

#[test]
fn a_bad_header_of_the_second_log_costs_no_record_of_the_first() {
    let dir = TempDir::new();
    put(dir.path(), "first", "1");
    put(dir.path(), "second", "2");
    let log = last_log(dir.path());
    flip_a_bit(&log, |_| 15);
    let repaired = db(&["repair"], dir.path());
    assert_eq!(repaired.code, Some(3), "something is lost: {repaired:?}");
    for part in [
        "1 records of damaged logs saved, at least 1 operations lost",
        "not all was saved",
        name_of(&log),
    ] {
        assert!(repaired.stdout.contains(part), "{part}: {repaired:?}");
    }
    assert!(dir.path().join("lost").join(name_of(&log)).exists());
    let server = TestServer::start(dir.path());
    assert_eq!(get(&server, "first"), "1");
    assert!(get(&server, "second").contains("404"));
}
