//! `kvant explain` with a server of known behaviour: it pauses for 200 ms each 5 s.

use crate::kvant_command::{TempDir, kvant, run};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

const MS: u64 = 1_000_000;
/// 12:00:00 of a day, when the monotonic clock shows 0.
const NOON_MS: u64 = 1_700_000_000_000 / 86_400_000 * 86_400_000 + 43_200_000;
const WINDOWS: u64 = 1_200;

/// Requests of 1 ms, and each 5 s of up to 200 ms, which end 200 ms after a mark.
fn history(is_marked: bool) -> Value {
    let windows: Vec<Value> = (0..WINDOWS)
        .map(|at| {
            let buckets = match at % 50 {
                1 => json!([[0, 50], [1, 50], [2, 50]]),
                0 => json!([]),
                _ => json!([[0, 100]]),
            };
            json!({
                "start_ns": at * 100 * MS,
                "length_ns": 100 * MS,
                "operations": {"get": {"count": 100, "failed": 0, "buckets": buckets}},
                "machine": {"stolen_ns": 0, "run_queue_wait_ns": 0, "server_cpu_ns": MS, "all_cpu_ns": MS},
            })
        })
        .collect();
    let pauses = (0..WINDOWS / 50).map(|at| {
        let start_ns = at * 5_000 * MS;
        json!({"kind": "housekeeping", "start_ns": start_ns, "end_ns": start_ns + 200 * MS, "fields": {}})
    });
    json!({
        "format": "kvant-history",
        "version": 1,
        "program_version": "9.9",
        "engine": "lsm",
        "cpus": 2,
        "monotonic_ns": WINDOWS * 100 * MS,
        "wall_ms": NOON_MS + WINDOWS * 100,
        "bucket_highest_ns": [MS, 100 * MS, 200 * MS],
        "windows": windows,
        "events": if is_marked { pauses.collect::<Vec<Value>>() } else { Vec::new() },
        "slow": [],
        "unknown": "ignored",
    })
}

/// Responds to one request; returns the address.
fn serve(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut lines = BufReader::new(&stream).lines();
        while lines.next().is_some_and(|line| !line.expect("a head").is_empty()) {}
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        (&stream).write_all((head + &body).as_bytes()).expect("the client reads");
    });
    address
}

#[test]
fn a_marked_pause_is_named_with_its_share() {
    let dir = TempDir::new();
    let page = dir.path().join("page.html");
    let address = serve("200 OK", history(true).to_string());
    let finished = run(kvant().args(["explain", "--url", &address, "-o"]).arg(&page));
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let text = &finished.stdout;
    assert!(text.contains("(kvant 9.9, engine lsm), 12:00:00.000 to 12:02:00.000 UTC"), "{text}");
    assert!(text.contains("100 % (100 to 100) coincides with housekeeping"), "{text}");
    let page = fs::read_to_string(page).expect("the page was written");
    assert!(page.contains("default-src 'none'") && !page.contains("<script"));
    assert!(page.contains("coincides with <b>housekeeping</b>"));
}

#[test]
fn an_unmarked_pause_is_unexplained() {
    let address = serve("200 OK", history(false).to_string());
    let finished = run(kvant().args(["explain", "--json", "--at", "12:01", "--url", &address]));
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let found: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(found["start_ns"], 0, "a minute before it");
    let rows = found["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["percent"] == 99.0).expect("p99");
    assert_eq!(row["shares"][0]["cause"]["kind"], "unexplained", "{row}");
    assert_eq!(row["shares"][0]["part"], 1.0, "{row}");
}

#[test]
fn what_cannot_be_explained_is_said_in_a_sentence() {
    let address = serve("404 Not Found", r#"{"detail":"nothing is recorded"}"#.to_owned());
    let finished = run(kvant().args(["explain", "--url", &address]));
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("answered 404: nothing is recorded"), "{}", finished.stderr);
    let address = serve("200 OK", history(true).to_string());
    let finished = run(kvant().args(["explain", "--at", "09:00", "--url", &address]));
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("does not reach back"), "{}", finished.stderr);
    let finished = run(kvant().args(["explain", "--last", "yesterday", "--at", "25:00"]));
    assert_eq!(finished.code, Some(2));
}
