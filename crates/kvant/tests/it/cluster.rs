//! `--engine cassandra` without a cluster. `cargo xtask cluster-check` has the tests with one.

use crate::kvant_command::{TempDir, kvant, run_with_input};
use crate::server_process::{TestServer, serve_to_end};

/// Nothing listens there.
const NOWHERE: [&str; 4] = ["--engine", "cassandra", "--cluster-nodes", "127.0.0.1:1"];

fn get(server: &TestServer, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    String::from_utf8(server.exchange(request.as_bytes())).expect("text")
}

#[test]
fn a_cluster_that_is_away_is_waited_for_and_health_says_why() {
    let dir = TempDir::new();
    let mut server = TestServer::start_listening(dir.path(), &NOWHERE);
    let line = server.wait_for_event("cluster_away");
    assert!(line.contains("refused"), "{line}");
    assert!(get(&server, "/v0/status").starts_with("HTTP/1.1 200 "));
    for path in ["/health", "/v0/entity?id=key", "/v0/entities?start=a"] {
        let response = get(&server, path);
        assert!(response.starts_with("HTTP/1.1 503 "), "{path}: {response}");
        assert!(
            response.contains("\"cluster-away\"") && response.contains("refused"),
            "{response}"
        );
        assert!(response.contains("retry-after"), "{response}");
    }
    server.wait_for_event("cluster_away");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_user_without_a_password_file_is_refused_before_the_start() {
    let dir = TempDir::new();
    for half in [["--cluster-user", "me"], ["--cluster-password-file", "/nowhere"]] {
        let ended = serve_to_end(dir.path(), &[&NOWHERE[..], &half].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
    let both = ["--cluster-user", "me", "--cluster-password-file", "/nowhere"];
    let ended = serve_to_end(dir.path(), &[&NOWHERE[..], &both].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.line("open_failed").contains("/nowhere"), "{ended:?}");
}

#[test]
fn a_password_is_read_from_a_pipe_and_an_empty_one_is_refused() {
    let dir = TempDir::new();
    let to = dir.path().join("to");
    for (input, words) in [("secret\n", "refused"), ("", "password"), ("\nsecret", "password")] {
        let mut command = kvant();
        command.args(["db", "copy", "cassandra://127.0.0.1:1/kvant"]).arg(&to);
        command.args(["--cluster-user", "me", "--cluster-password-file", "/dev/stdin"]);
        let done = run_with_input(&mut command, input);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains(words), "{input:?}: {done:?}");
    }
}
