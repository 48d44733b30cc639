//! One process and one user own the data directory.

use crate::kvant_command::{TempDir, kvant, run};
use crate::server_process::{TestServer, serve_to_end};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const PUT: &[u8] =
    b"PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

fn post(server: &TestServer, target: &str) {
    let request = format!("POST {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let response = server.exchange(request.as_bytes());
    assert!(response.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&response));
}

#[test]
fn a_deleted_lock_file_lets_no_second_owner_in() {
    let dir = TempDir::new();
    let owner = TestServer::start(dir.path());
    std::fs::remove_file(dir.path().join("LOCK")).expect("the file is ours");
    let process = format!("process {}", owner.pid());
    let second = serve_to_end(dir.path(), &[]);
    assert_eq!(second.code, Some(1), "{second:?}");
    let line = second.line("open_failed");
    assert!(line.contains(&process), "{line}");
    for command in ["compact", "repair", "stats"] {
        let rejected = run(kvant().args(["db", command]).arg(dir.path()));
        assert_eq!(rejected.code, Some(1), "{command}: {rejected:?}");
        assert!(rejected.stderr.contains(&process), "{command}: {rejected:?}");
    }
    assert!(owner.exchange(PUT).starts_with(b"HTTP/1.1 201 "));
    assert_eq!(owner.stop().code, Some(0));
    assert_eq!(TestServer::start(dir.path()).stop().code, Some(0));
}

/// Checks that only the owner has access to `path` and below; returns the number of files. A server
/// may remove and rename some meanwhile.
fn assert_private(path: &Path) -> usize {
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return 0,
        metadata => metadata.expect("it exists"),
    };
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_dir() {
        assert_eq!(mode, 0o700, "{}", path.display());
        let entries = std::fs::read_dir(path).expect("readable");
        return entries.map(|entry| assert_private(&entry.expect("readable").path())).sum();
    }
    assert_eq!(mode, 0o600, "{}", path.display());
    1
}

#[test]
fn data_logs_and_checkpoints_are_readable_by_their_owner_alone() {
    let dir = TempDir::new();
    let data = dir.path().join("parent/data");
    let server = TestServer::start_after("umask 000", &data, &[]);
    assert!(server.exchange(PUT).starts_with(b"HTTP/1.1 201 "));
    post(&server, "/v0/admin/flush");
    post(&server, "/v0/admin/checkpoint?dir=copy");
    assert!(server.exchange(PUT).starts_with(b"HTTP/1.1 201 "));
    post(&server, "/v0/admin/compact");
    // Lock, reserve, manifest, log and table; manifest and table of the checkpoint.
    let files = assert_private(&dir.path().join("parent"));
    assert!(files >= 7, "{files} files");
    assert_eq!(server.stop().code, Some(0));
}
