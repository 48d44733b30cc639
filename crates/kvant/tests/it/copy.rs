//! `kvant db copy` between directories and servers: real processes and files. Copies to and from
//! clusters are in `cluster_copy`.

use crate::connection::Connection;
use crate::db::{db_done, request};
use crate::kvant_command::{Finished, TempDir, kvant, run};
use crate::server_process::TestServer;
use crate::small_disk::{SmallDisk, key};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

pub(crate) fn copy(args: &[&str]) -> Finished {
    run(kvant().args(["db", "copy", "--memory", "128MiB"]).args(args))
}

pub(crate) fn copied(args: &[&str]) -> Finished {
    let done = copy(args);
    assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
    done
}

/// A copy that has to fail; returns what it says.
pub(crate) fn refused(args: &[&str]) -> String {
    let done = copy(args);
    assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
    done.stderr
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

/// Puts records `numbers` with values of 1,000 bytes.
pub(crate) fn put(server: &TestServer, numbers: std::ops::Range<u32>) {
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    for number in numbers {
        let value = number.to_string().repeat(1_000 / number.to_string().len());
        let path = key(number);
        let head = format!(
            "PUT /v0/entity?id={path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{value}",
            value.len()
        );
        connection.send(head.as_bytes()).expect("the server takes the request");
        assert_eq!(connection.receive().expect("a response").status, 201);
    }
}

/// Runs a copy and kills it when it has said that it is under way.
pub(crate) fn copy_and_kill(args: &[&str]) {
    let mut command = kvant();
    command.args(["db", "copy", "--memory", "128MiB"]).args(args).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().expect("the binary can be started");
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut line = String::new();
    while !line.contains("copied;") {
        line.clear();
        let read = stderr.read_line(&mut line).expect("it is UTF-8");
        assert!(read > 0, "the copy has ended before it was killed");
    }
    child.kill().expect("the process is ours");
    child.wait().expect("the process is ours");
}

#[test]
fn a_server_is_copied_into_directories_of_both_engines_while_it_serves() {
    let dir = TempDir::new();
    let [data, lsm, leveldb] = ["data", "lsm", "leveldb"].map(|name| dir.path().join(name));
    let server = TestServer::start(&data);
    put(&server, 0..2_000);
    request(&server, "PUT", "%00%ff", b"");
    let url = format!("http://{}", server.addr());
    let done = copied(&[&url, text(&lsm), "--verify"]);
    assert!(done.stdout.contains(": 2001 records, "), "{done:?}");
    assert!(done.stdout.ends_with(" ranges\n"), "{done:?}");
    assert!(done.stderr.contains("does not say when records expire"), "{done:?}");
    #[cfg(feature = "leveldb")]
    {
        copied(&[&url, text(&leveldb), "--to-engine", "leveldb"]);
        copied(&[text(&lsm), text(&leveldb), "--verify-only"]);
    }

    request(&server, "PUT", &key(77), b"changed");
    request(&server, "DELETE", &key(78), b"");
    request(&server, "PUT", "new", b"");
    let said = refused(&[&url, text(&lsm), "--verify-only"]);
    assert!(said.contains(&format!("`{}` has another value", key(77))), "{said}");
    assert!(said.contains(&format!("`{}` is only in the second place", key(78))), "{said}");
    assert!(said.contains("`new` is missing"), "{said}");
    assert!(said.contains("of 2001 records 1 are missing"), "{said}");
    assert!(!said.contains("kvant db repair"), "{said}");
    assert_eq!(server.stop().code, Some(0));
    assert_eq!(db_done(&["dump"], &lsm).lines().count(), 2_001);
}

#[test]
fn a_copy_that_was_killed_goes_on_and_is_whole() {
    let dir = TempDir::new();
    let from = dir.path().join("from");
    let server = TestServer::start(&from);
    put(&server, 0..20_000);
    let url = format!("http://{}", server.addr());
    let engines: &[&str] = if cfg!(feature = "leveldb") { &["lsm", "leveldb"] } else { &["lsm"] };
    for engine in engines {
        let to = dir.path().join(engine);
        let slow = SlowServer::start(server.addr());
        let args = [slow.url.as_str(), text(&to), "--to-engine", engine];
        copy_and_kill(&args);
        assert!(!to.exists(), "a directory with the final name is whole");
        let said = refused(&[&url, text(&to), "--to-engine", engine]);
        assert!(said.contains("is an unfinished copy of"), "{said}");
        let done = copied(&args);
        assert!(done.stderr.contains("the copy goes on after `"), "{done:?}");
        copied(&[&url, text(&to), "--verify-only"]);
        assert!(!dir.path().join(format!("{engine}.unfinished")).exists());
    }
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_copy_of_a_server_in_use_goes_on_though_records_before_it_have_changed() {
    let dir = TempDir::new();
    let to = dir.path().join("to");
    let server = TestServer::start(&dir.path().join("from"));
    put(&server, 0..20_000);
    let slow = SlowServer::start(server.addr());
    let args = [slow.url.as_str(), text(&to)];
    copy_and_kill(&args);
    // The first key.
    request(&server, "PUT", &key(0), b"changed");
    let said = refused(&[args[0], args[1], "--verify"]);
    assert!(said.contains(&format!("`{}` has another value", key(0))), "{said}");
    let done = copied(&args);
    assert!(done.stdout.contains(", of earlier attempts, were not compared"), "{done:?}");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn keys_of_the_greatest_length_are_copied_from_a_server_and_compared_with_it() {
    const COUNT: usize = 1_000;
    let dir = TempDir::new();
    let to = dir.path().join("to");
    let server = TestServer::start(&dir.path().join("from"));
    let long_key = |number: usize| format!("{number:0>16384}");
    for number in 0..COUNT {
        request(&server, "PUT", &long_key(number), b"");
    }
    let slow = SlowServer::start(server.addr());
    let args = [slow.url.as_str(), text(&to)];
    copy_and_kill(&args);
    let done = copied(&args);
    assert!(done.stderr.contains("the copy goes on after `000"), "{done:?}");
    request(&server, "PUT", &long_key(COUNT / 2), b"changed");
    let url = format!("http://{}", server.addr());
    let said = refused(&[&url, text(&to), "--verify-only"]);
    assert!(said.contains(&format!("`{}` has another value", long_key(COUNT / 2))), "{said}");
    assert!(said.contains("1 have another value there, and it has 0 more"), "{said}");
    assert_eq!(server.stop().code, Some(0));
}

/// Passes requests on to a server.
pub(crate) struct SlowServer {
    pub(crate) url: String,
}

impl SlowServer {
    /// After 8 MiB the first response comes in pieces of at most 64 KiB, one each 50 ms: long
    /// enough that a copy says that it is under way, and is killed.
    pub(crate) fn start(server: std::net::SocketAddr) -> SlowServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it listens"));
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let mut client = client.expect("a connection");
                let mut server = std::net::TcpStream::connect(server).expect("it listens");
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut part = [0; 4_096];
                    let len = client.read(&mut part).expect("a request");
                    request.extend_from_slice(&part[..len]);
                }
                server.write_all(&request).expect("it reads");
                let mut buffer = vec![0; 64 << 10];
                let mut sent = 0;
                while let Ok(len @ 1..) = server.read(&mut buffer) {
                    if client.write_all(&buffer[..len]).is_err() {
                        break;
                    }
                    sent += len;
                    if number == 0 && sent > 8 << 20 {
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                }
            }
        });
        SlowServer { url }
    }
}

#[test]
fn what_cannot_be_copied_is_refused_with_the_reason_and_changes_nothing() {
    let dir = TempDir::new();
    let [data, to] = ["data", "to"].map(|name| dir.path().join(name));
    let server = TestServer::start(&data);
    put(&server, 0..1);
    let url = format!("http://{}", server.addr());
    let nowhere = "http://127.0.0.1:1";
    for (args, words) in [
        ([text(&data), text(&to)], "can be copied by its address"),
        ([nowhere, text(&to)], "is a server running there?"),
        ([&url, nowhere], "can only be copied from"),
        ([&url, text(&data)], "is not empty"),
        ([text(&to), "copy"], "cannot list"),
        (["https://example.com", "copy"], "without TLS"),
        #[cfg(feature = "cassandra")]
        ([&url, "cassandra://127.0.0.1:1/kvant"], "refused"),
        #[cfg(feature = "cassandra")]
        (["cassandra://127.0.0.1:1/kvant", text(&to)], "refused"),
    ] {
        let said = refused(&args);
        assert!(said.contains(words), "{args:?}: {said}");
        assert!(!to.exists(), "{args:?}");
    }
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_directory_that_cannot_be_replaced_is_refused_before_the_copy() {
    let dir = TempDir::new();
    let [from, empty, link, nested] =
        ["from", "empty", "link", "nested"].map(|name| dir.path().join(name));
    let dangling = dir.path().join("dangling");
    let server = TestServer::start(&from);
    put(&server, 0..1);
    assert_eq!(server.stop().code, Some(0));
    std::fs::create_dir(&empty).expect("created");
    std::os::unix::fs::symlink(&empty, &link).expect("a link");
    std::os::unix::fs::symlink("absent", &dangling).expect("a link");
    std::fs::create_dir_all(nested.join("directory")).expect("created");
    let disk = SmallDisk::mount(80);
    let mount = disk.as_ref().map(SmallDisk::data);
    let mount = mount.as_deref().and_then(Path::parent);
    for to in [&*link, &*dangling, &*nested].into_iter().chain(mount) {
        let said = refused(&[text(&from), text(to), "--to-engine", "lsm"]);
        assert!(said.contains("cannot replace"), "{said}");
        let name = to.file_name().and_then(|name| name.to_str()).expect("ours");
        assert!(!to.with_file_name(format!("{name}.unfinished")).exists(), "{said}");
    }
    copied(&[text(&from), text(&empty), "--to-engine", "lsm"]);
    assert_eq!(db_done(&["dump"], &empty).lines().count(), 1);
}

/// Regression: a directory with the name of the unfinished copy was removed, even the source.
#[test]
fn a_directory_that_is_no_unfinished_copy_is_not_removed() {
    let dir = TempDir::new();
    let [from, to] = ["to.unfinished", "to"].map(|name| dir.path().join(name));
    let server = TestServer::start(&from);
    put(&server, 0..10);
    assert_eq!(server.stop().code, Some(0));
    let said = refused(&[text(&from), text(&to), "--to-engine", "lsm"]);
    assert!(said.contains("it is no unfinished copy"), "{said}");
    assert_eq!(db_done(&["dump"], &from).lines().count(), 10);
    let inner = dir.path().join("other.unfinished/inner");
    std::fs::create_dir_all(&inner).expect("created");
    let said = refused(&[text(&from), text(&dir.path().join("other")), "--to-engine", "lsm"]);
    assert!(said.contains("it is no unfinished copy") && inner.exists(), "{said}");
}

#[test]
fn a_server_that_ends_midway_leaves_a_copy_that_can_go_on() {
    let dir = TempDir::new();
    let [data, to] = ["data", "to"].map(|name| dir.path().join(name));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    let cut = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a connection");
        let mut request = vec![0; 1_024];
        assert!(client.read(&mut request).expect("a short request") > 0);
        let head = "HTTP/1.0 200 OK\r\ncontent-type: application/vnd.kvant.records\r\n\r\n";
        client.write_all(head.as_bytes()).expect("it reads");
        client.write_all(b"\x01\0\0\0\x01\0\0\0av\x01\0\0\0").expect("it reads");
    });
    let said = refused(&[&url, text(&to)]);
    cut.join().expect("the server ends well");
    assert!(said.contains("the connection broke off"), "{said}");
    assert!(said.contains("the same command goes on where this one ended"), "{said}");
    assert!(!to.exists() && !data.exists());
}
