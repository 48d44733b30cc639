//! `kvant load` without a script: methods, bodies, request counts, and the end at a failed
//! assertion.

use crate::kvant_command::{TempDir, run_kvant, run_with_input};
use crate::load::{good_load, load, load_command};
use crate::server_process::TestServer;
use kvant_load::report::json::ResultFile;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

const SMALL: [&str; 4] = ["-t1", "-c2", "-R200", "--quiet"];

/// Responds to each request with `status` while the test runs.
fn responding(status: u16) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let addr = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                // A connection carries one request at a time, in one piece.
                while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                    let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                    if stream.write_all(response.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

#[test]
fn methods_and_bodies_reach_the_server() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let file = dir.path().join("value.bin");
    std::fs::write(&file, [0, 255, 10]).expect("writable");
    let from_file = format!("@{}", file.display());
    for (body, value) in [("hello", &b"hello"[..]), (&from_file, &[0, 255, 10])] {
        let args = ["-n", "1", "--method", "PUT", "--body", body];
        let text = good_load(&server, &[&SMALL[..], &args].concat(), "/v0/entity?id=k");
        assert!(!text.contains("Non-2xx"), "{text}");
        let stored = server
            .exchange(b"GET /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(stored.ends_with(&[b"\r\n\r\n", value].concat()), "{}", stored.escape_ascii());
    }
    let text =
        good_load(&server, &[&SMALL[..], &["-n3", "--method", "HEAD"]].concat(), "/v0/entity?id=k");
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
    let text = good_load(
        &server,
        &[&SMALL[..], &["-n3", "--method", "DELETE"]].concat(),
        "/v0/entity?id=k",
    );
    assert!(!text.contains("Non-2xx"), "{text}");
    let text = good_load(&server, &[&SMALL[..], &["-n3", "--body", "x"]].concat(), "/v0/status");
    assert!(text.contains("status 405: 3"), "{text}");
    let missing = load(&server, &[&SMALL[..], &["--body", "@/nowhere/x"]].concat(), "/");
    assert!(missing.code == Some(1) && missing.stderr.contains("/nowhere/x"), "{missing:?}");
}

/// Regression: a pipe, whose metadata has the length 0, was taken for an empty file.
#[test]
fn a_body_and_a_script_are_read_from_a_pipe() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let url = format!("http://{}/v0/entity?id=k", server.addr());
    let script = "function request() return wrk.format('PUT', nil, nil, 'of the script') end";
    for (args, input, value) in [
        (&["--method", "PUT", "--body", "@/dev/stdin"][..], "of the pipe", "of the pipe"),
        (&["-s", "/dev/stdin"], script, "of the script"),
    ] {
        let mut command = load_command();
        command.args(SMALL).args(["-n", "1"]).args(args).arg(&url);
        let done = run_with_input(&mut command, input);
        assert_eq!(done.code, Some(0), "{done:?}");
        let stored = server
            .exchange(b"GET /v0/entity?id=k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let end = format!("\r\n\r\n{value}");
        assert!(stored.ends_with(end.as_bytes()), "{}", stored.escape_ascii());
    }
}

#[test]
fn a_load_ends_after_a_number_of_requests() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let json = dir.path().join("a.json");
    let json_name = json.to_str().expect("ASCII");
    for (rate, count) in [("-R500", 70), ("-R0", 1_000), ("-R0", 1)] {
        let number = count.to_string();
        let args = ["-t2", "-c4", rate, "-n", &number, "--json", json_name, "--quiet"];
        let text = good_load(&server, &args, "/v0/status");
        let begin = format!("Running {count} request{} @ ", if count == 1 { "" } else { "s" });
        assert!(text.starts_with(&begin), "{text}");
        let result = ResultFile::read(&json).expect("a result");
        let [phase] = &result.phases[..] else {
            panic!("{text}");
        };
        let total = &phase.outcome.total;
        assert_eq!((total.planned, total.sent, total.completed), (count, count, count));
        assert_eq!(phase.outcome.phase.request_count_max, Some(count));
        assert!(!phase.outcome.is_cut_short, "{text}");
        assert!(!text.contains("It was ended"), "{text}");
    }
}

#[test]
fn a_failed_assertion_ends_the_load() {
    let url = format!("http://{}/", responding(500));
    let begin = std::time::Instant::now();
    let args = ["load", "-t1", "-c2", "-d10m", "-R50,100", "--quiet"];
    let asserts = ["--assert", "rate>=1", "--assert", "errors==0", "--abort-on-fail"];
    let done = run_kvant(&[&args[..], &asserts, &[&url]].concat());
    assert_eq!(done.code, Some(3), "{done:?}");
    // The duration is ten minutes.
    assert!(begin.elapsed().as_secs() < 300, "{done:?}");
    assert_eq!(done.stdout.matches("Running ").count(), 1, "{done:?}");
    assert!(done.stdout.contains("\nEnded at a broken assertion: errors==0: broken ("), "{done:?}");
    assert!(done.stdout.contains("\n  status 500: "), "{done:?}");
}

#[test]
fn an_assertion_that_only_the_end_decides_ends_the_load_between_rates() {
    let url = format!("http://{}/", responding(200));
    let args = ["load", "-t1", "-c2", "-d300ms", "-R20,40,60", "--quiet"];
    let kept = ["--assert", "errors==0", "--abort-on-fail"];
    let done = run_kvant(&[&args[..], &kept, &[&url]].concat());
    assert_eq!((done.code, done.stdout.matches("Running ").count()), (Some(0), 3), "{done:?}");
    let broken = ["--assert", "rate>=1M", "--abort-on-fail"];
    let done = run_kvant(&[&args[..], &broken, &[&url]].concat());
    assert_eq!(done.stdout.matches("Running ").count(), 1, "{done:?}");
    assert!(matches!(done.code, Some(3 | 4)), "{done:?}");
}

#[test]
fn a_rate_below_zero_and_a_path_of_a_workload_are_wrong_usage() {
    let done = run_kvant(&["load", "-R", "-5", "http://127.0.0.1:1/"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("--rate: `-5` is not a rate"), "{done:?}");
    let url = "http://127.0.0.1:1/v0/entity";
    for args in
        [&["load", "-R5", "--workload", "get", url][..], &["load", "fill", "--keys", "5", url]]
    {
        let done = run_kvant(args);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains("leave `/v0/entity` out"), "{done:?}");
    }
}
