//! Where a real server creates checkpoints, and where it does not.

use crate::kvant_command::{TempDir, kvant, run};
use crate::server_process::TestServer;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PUT: &[u8] =
    b"PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

fn checkpoint(server: &TestServer, target: &str) -> String {
    let request = format!(
        "POST /v0/admin/checkpoint?dir={target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    String::from_utf8(server.exchange(request.as_bytes())).expect("heads and JSON")
}

#[track_caller]
fn assert_refused(response: &str, kind: &str) {
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(response.contains(&format!("\"type\":\"{kind}\"")), "{response}");
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("readable");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("readable").file_name().into_string().expect("ours"))
        .collect();
    names.sort();
    names
}

fn directories(dir: &Path) -> Vec<String> {
    let mut names = names(dir);
    names.retain(|name| dir.join(name).is_dir());
    names
}

#[test]
fn checkpoints_are_made_beside_the_data_and_nowhere_else() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    assert!(server.exchange(PUT).starts_with(b"HTTP/1.1 201 "));
    let outside = dir.path().join("outside");
    for bad in [
        outside.to_str().expect("ours"),
        "../outside",
        "..",
        ".",
        "a/b",
        "a/",
        "%00",
        &"n".repeat(256),
    ] {
        assert_refused(&checkpoint(&server, bad), "bad-query");
    }
    assert_eq!(names(dir.path()), ["data"]);
    let done = checkpoint(&server, "first");
    assert!(done.starts_with("HTTP/1.1 200 "), "{done}");
    assert_refused(&checkpoint(&server, "first"), "invalid");
    assert_eq!(names(dir.path()), ["checkpoints", "data"]);
    assert_eq!(names(&dir.path().join("checkpoints")), ["first"]);
    let whole = run(kvant().args(["db", "verify"]).arg(dir.path().join("checkpoints/first")));
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_checkpoint_in_the_data_directory_is_rejected() {
    let dir = TempDir::new();
    let data = dir.path().join("data");
    let link = dir.path().join("link");
    let server = TestServer::start_with(&data, &["--checkpoints", link.to_str().expect("ours")]);
    assert!(server.exchange(PUT).starts_with(b"HTTP/1.1 201 "));
    std::os::unix::fs::symlink(&data, &link).expect("a link");
    assert_refused(&checkpoint(&server, "copy"), "invalid");
    // The server itself makes logs and the reserve there at any time; a checkpoint is a directory.
    assert_eq!(directories(&data), [""; 0]);
    assert_eq!(server.stop().code, Some(0));
    for target in [data.join("copy"), data.join("new/copy"), link.join("copy")] {
        let rejected = run(kvant().args(["db", "checkpoint"]).arg(&data).arg(&target));
        assert_eq!(rejected.code, Some(1), "{rejected:?}");
        assert!(rejected.stderr.contains("data directory"), "{rejected:?}");
        assert!(!data.join("copy").exists() && !data.join("new").exists());
    }
}

#[test]
fn a_directory_with_files_is_not_restored_to_by_any_name() {
    let dir = TempDir::new();
    let [data, copy, there] = ["data", "copy", "there"].map(|name| dir.path().join(name));
    let server = TestServer::start(&data);
    assert!(server.exchange(PUT).starts_with(b"HTTP/1.1 201 "));
    assert_eq!(server.stop().code, Some(0));
    let made = run(kvant().args(["db", "checkpoint"]).arg(&data).arg(&copy));
    assert_eq!(made.code, Some(0), "{made:?}");
    std::fs::create_dir(&there).expect("created");
    std::fs::write(there.join("notes"), "ours").expect("written");
    // Leads there only when the missing part has been created.
    let name = dir.path().join("missing/../there");
    let refused = run(kvant().args(["db", "restore"]).arg(&copy).arg(&name));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("has a file notes"), "{refused:?}");
    assert_eq!(names(&there), ["LOCK", "notes"]);
}

#[test]
fn a_checkpoint_on_another_file_system_is_rejected_and_leaves_nothing() {
    let shared_memory = Path::new("/dev/shm");
    let dir = TempDir::new();
    let device = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev()).ok();
    if device(shared_memory).is_none_or(|shared| Some(shared) == device(dir.path())) {
        println!("this machine has no other file system: nothing is tested");
        return;
    }
    let data = dir.path().join("data");
    let top = shared_memory.join(format!("kvant-checkpoints-{}", std::process::id()));
    let checkpoints = top.join("parent");
    let server =
        TestServer::start_with(&data, &["--checkpoints", checkpoints.to_str().expect("ours")]);
    assert!(server.exchange(PUT).starts_with(b"HTTP/1.1 201 "));
    let response = checkpoint(&server, "copy");
    assert_refused(&response, "invalid");
    assert!(response.contains("file system"), "{response}");
    assert!(!top.exists(), "no parent is left");
    assert!(!names(&data).iter().any(|name| name.contains("unfinished")));
    assert_eq!(server.stop().code, Some(0));
}
