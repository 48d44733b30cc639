//! Copies to and from a real node, and servers with settings that do not fit to it. `cargo xtask
//! cluster-check` starts the node; these tests are ignored otherwise.

use crate::connection::Connection;
use crate::copy::{SlowServer, copied, copy, copy_and_kill, put, refused, text};
use crate::db::{db_done, request};
use crate::kvant_command::TempDir;
use crate::server_process::{TestServer, serve_to_end};
use crate::small_disk::key;
use std::sync::atomic::{AtomicU32, Ordering};

/// Cassandra's first user, and password.
const USER: &str = "cassandra";

fn node() -> String {
    std::env::var("KVANT_TEST_CLUSTER").expect("`cargo xtask cluster-check` names a node")
}

/// A keyspace that does not exist, and how to log in.
pub(crate) struct Keyspace {
    name: String,
    password: String,
}

impl Keyspace {
    pub(crate) fn new(dir: &TempDir) -> Keyspace {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.path().join("password");
        std::fs::write(&path, USER).expect("writable");
        Keyspace {
            name: format!("copy_{}_{number}", std::process::id()),
            password: text(&path).to_string(),
        }
    }

    fn place(&self) -> String {
        format!("cassandra://{}/{}", node(), self.name)
    }

    fn login(&self) -> Vec<&str> {
        vec![
            "--cluster-user",
            USER,
            "--cluster-password-file",
            &self.password,
            "--cluster-replicas",
            "1",
            "--cluster-buckets",
            "16",
        ]
    }

    /// A server with its records there.
    pub(crate) fn serve(&self, dir: &TempDir) -> TestServer {
        let node = node();
        TestServer::start_with(dir.path(), &self.serve_args(&node))
    }

    fn serve_args<'a>(&'a self, node: &'a str) -> Vec<&'a str> {
        let place = ["--cluster-nodes", node, "--cluster-keyspace", &self.name];
        [&["--engine", "cassandra"], &place[..], &self.login()].concat()
    }
}

fn args<'a>(from: &'a str, to: &'a str, login: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&[from, to], login, more].concat()
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_directory_is_copied_to_a_cluster_and_back_with_times_to_live() {
    let dir = TempDir::new();
    let [data, back] = ["data", "back"].map(|name| dir.path().join(name));
    let keyspace = Keyspace::new(&dir);
    let (place, login) = (keyspace.place(), keyspace.login());
    let server = TestServer::start(&data);
    put(&server, 0..3_000);
    request(&server, "PUT", "%00%ff", b"");
    request(&server, "PUT", "lasting&ttl=100000", b"for a day");
    request(&server, "PUT", "short&ttl=30", b"for a moment");
    assert_eq!(server.stop().code, Some(0));

    let done = copied(&args(text(&data), &place, &login, &["--verify"]));
    assert!(done.stdout.contains(": 3003 records, "), "{done:?}");
    let again = refused(&args(text(&data), &place, &login, &[]));
    assert!(again.contains("has records"), "{again}");
    copied(&args(&place, text(&back), &login, &["--to-engine", "lsm"]));

    let server = keyspace.serve(&dir);
    let mut connection = Connection::open(server.addr()).expect("the server listens");
    assert_eq!(connection.all_records().expect("a range").len(), 3_003);
    assert_eq!(server.stop().code, Some(0));
    // What is left of the short life is kept: with it, the record is gone from all places at last.
    let is_there = || db_done(&["dump"], &back).contains("short = ");
    while is_there() {
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    assert!(db_done(&["dump"], &back).contains("lasting = for a day"));
    copied(&args(&place, text(&back), &login, &["--verify-only"]));
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_copy_to_a_cluster_that_was_killed_goes_on_and_is_whole() {
    let dir = TempDir::new();
    let keyspace = Keyspace::new(&dir);
    let (place, login) = (keyspace.place(), keyspace.login());
    let server = TestServer::start(&dir.path().join("data"));
    put(&server, 0..30_000);
    let url = format!("http://{}", server.addr());
    let slow = SlowServer::start(server.addr());
    copy_and_kill(&args(&slow.url, &place, &login, &[]));

    let other = refused(&args(&url, &place, &login, &[]));
    assert!(other.contains("has a part of a copy of"), "{other}");
    // A record that a client wrote after the copy began is newer than that of the copy.
    let of_cluster = keyspace.serve(&dir);
    request(&of_cluster, "PUT", &key(29_999), b"newer");
    let done = copied(&args(&slow.url, &place, &login, &[]));
    assert!(done.stderr.contains("the copy goes on after `"), "{done:?}");
    let said = refused(&args(&url, &place, &login, &["--verify-only"]));
    assert!(said.contains("of 30000 records 0 are missing"), "{said}");
    assert!(said.contains("1 have another value there, and it has 0 more"), "{said}");
    assert!(said.contains(&format!("`{}` has another value", key(29_999))), "{said}");
    assert_eq!(of_cluster.stop().code, Some(0));
    assert_eq!(server.stop().code, Some(0));
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn copies_with_settings_that_do_not_fit_are_refused_with_the_reason() {
    let dir = TempDir::new();
    let to = dir.path().join("to");
    let keyspace = Keyspace::new(&dir);
    let place = keyspace.place();
    let said = refused(&args(&place, text(&to), &keyspace.login(), &[]));
    assert!(said.contains(&format!("the cluster has no keyspace `{}`", keyspace.name)), "{said}");
    std::fs::write(&keyspace.password, "wrong").expect("writable");
    let said = refused(&args(&place, text(&to), &keyspace.login(), &[]));
    assert!(said.contains("refuses the connection"), "{said}");
    let said = refused(&[&place, text(&to)]);
    assert!(said.contains("refuses the connection"), "{said}");
    assert!(!to.exists());
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_server_whose_settings_do_not_fit_to_the_cluster_ends_with_the_reason() {
    let dir = TempDir::new();
    let keyspace = Keyspace::new(&dir);
    let node = node();
    assert_eq!(keyspace.serve(&dir).stop().code, Some(0));
    let refusal = |args: &[&str]| {
        let ended = serve_to_end(dir.path(), args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        ended.line("open_failed").to_string()
    };
    let with = |more: &[&'static str]| {
        let mut args = keyspace.serve_args(&node);
        args.extend(more);
        args.into_iter().map(str::to_string).collect::<Vec<_>>()
    };
    let wrong_replicas: Vec<String> =
        with(&[]).into_iter().map(|arg| if arg == "1" { "2".to_string() } else { arg }).collect();
    let wrong_replicas: Vec<&str> = wrong_replicas.iter().map(String::as_str).collect();
    let line = refusal(&wrong_replicas);
    assert!(line.contains("has 1 nodes for each record, the settings say 2"), "{line}");
    let system = Keyspace { name: "system".to_string(), password: keyspace.password.clone() };
    let line = refusal(&system.serve_args(&node));
    assert!(line.contains("the keyspace `system` is not Kvant's"), "{line}");
    std::fs::write(&keyspace.password, "wrong").expect("writable");
    let line = refusal(&keyspace.serve_args(&node));
    assert!(line.contains("the cluster refuses the connection"), "{line}");
    let done = copy(&args(&keyspace.place(), text(&dir.path().join("to")), &[], &[]));
    assert_eq!(done.code, Some(1), "{done:?}");
}
