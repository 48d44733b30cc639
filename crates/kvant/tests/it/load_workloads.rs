//! `kvant load` with scripts, native workloads and fills, against a real server.

use crate::kvant_command::{Finished, TempDir, kvant, run, run_again_while};
use crate::load::{Classic, load, load_command, run_load};
use crate::server_process::TestServer;
use kvant_load::OpRecord;
use kvant_load::report::json::ResultFile;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// 280 requests.
const SMALL: [&str; 5] = ["-t2", "-c4", "-d700ms", "-R400", "--quiet"];
/// Enough responses to contain every expected kind.
const ENOUGH: u64 = 140;
/// Keys that the tests fill a store with.
const KEYS: &str = "2000";

fn scripts_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/workloads")
}

/// A server whose store has [`KEYS`].
fn filled(dir: &TempDir) -> TestServer {
    // Writes do not wait for the disk.
    let server = TestServer::start_with(&dir.path().join("data"), &["--sync", "os"]);
    let url = format!("http://{}", server.addr());
    let done = run(kvant().args([
        "load",
        "fill",
        "--timeout",
        "60s",
        "--keys",
        KEYS,
        "--value-bytes",
        "1..100",
        &url,
    ]));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.starts_with("2000 of 2000 keys stored in "), "{done:?}");
    server
}

/// Runs a load with arguments before and after the URL; returns the kinds of requests with the
/// statuses of their responses. If a stall of the machine left too few responses to contain every
/// kind, the load is repeated.
fn statuses(
    server: &TestServer,
    dir: &TempDir,
    before: &[&str],
    behind: &[&str],
) -> BTreeSet<(String, u16)> {
    let json = dir.path().join("result.json");
    let url = format!("http://{}", server.addr());
    let result = || ResultFile::read(&json).expect("a result");
    let mut command = load_command();
    command.args(SMALL).arg("--json").arg(&json);
    command.args(before).arg(url).args(behind);
    let is_too_little = |done: &Finished| {
        let is_clean = done.code == Some(0) && !done.stdout.contains("Socket errors:");
        is_clean && result().phases[0].outcome.total.completed < ENOUGH
    };
    let done = run_again_while(is_too_little, || run(&mut command));
    assert_eq!(done.code, Some(0), "{before:?}: {done:?}");
    Classic::parse(&done.stdout).assert_clean();
    let kinds = |op: &OpRecord| {
        let statuses = op.statuses.iter();
        let kinds: Vec<_> = statuses.map(|(status, _)| (op.name.clone(), *status)).collect();
        kinds
    };
    result().phases[0].outcome.total.ops.iter().flat_map(kinds).collect()
}

#[test]
fn filled_keys_are_found_and_others_are_not() {
    let dir = TempDir::new();
    let server = filled(&dir);
    let get = |ratio: &str| {
        let args = ["--workload", "get", "--keys", KEYS, "--hit-ratio", ratio];
        statuses(&server, &dir, &args, &[])
    };
    let gets =
        |statuses: &[u16]| statuses.iter().map(|status| ("get".to_owned(), *status)).collect();
    assert_eq!(get("1"), gets(&[200]));
    assert_eq!(get("0"), gets(&[404]));
    assert_eq!(get("0.5"), gets(&[200, 404]));
}

/// Options, and the resulting kinds with their statuses.
type Case = (&'static [&'static str], &'static [(&'static str, u16)]);

#[test]
fn every_workload_gets_the_expected_responses() {
    let dir = TempDir::new();
    let server = filled(&dir);
    let cases: [Case; 6] = [
        (&["status"], &[("status", 200)]),
        (&["put", "--value-bytes", "1..10000", "--key-bytes", "100..2000"], &[("put", 201)]),
        (&["put", "--value-bytes", "grow:1..500", "--key-dist", "sequential"], &[("put", 201)]),
        (&["range", "--range-records", "20"], &[("range", 200)]),
        (
            &["mixed", "--mix", "get=50,put=50", "--key-dist", "zipfian"],
            &[("get", 200), ("put", 201)],
        ),
        // It leaves the store changed.
        (&["delete"], &[("delete", 202)]),
    ];
    for (args, expected) in cases {
        let args = [&["--keys", KEYS, "--workload"], args].concat();
        let found = statuses(&server, &dir, &args, &[]);
        let found: BTreeSet<(&str, u16)> =
            found.iter().map(|(kind, status)| (kind.as_str(), *status)).collect();
        assert_eq!(found, expected.iter().copied().collect(), "{args:?}");
    }
}

/// Every file in `lab/workloads/`, with the expected statuses.
#[test]
fn every_script_gets_the_expected_responses() {
    let expected: [(&str, &[u16]); 12] = [
        ("delete.lua", &[202]),
        ("get-absent.lua", &[404]),
        ("get-existing.lua", &[200]),
        ("get-mixed.lua", &[200, 404]),
        ("get-one.lua", &[200]),
        ("put-fixed.lua", &[201]),
        ("put-growing.lua", &[201]),
        ("put-long-keys.lua", &[201]),
        ("put-random.lua", &[201]),
        ("range.lua", &[200]),
        ("status-beside-put.lua", &[200, 201]),
        ("status.lua", &[200]),
    ];
    let mut names: Vec<String> = std::fs::read_dir(scripts_dir())
        .expect("the scripts are in the repository")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("ASCII"))
        .filter(|name| name.ends_with(".lua"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        expected.map(|(name, _)| name),
        "a script without an expectation, or the reverse"
    );

    let dir = TempDir::new();
    let server = filled(&dir);
    // The script that deletes comes last.
    for (name, statuses_expected) in expected.iter().rev() {
        let script = scripts_dir().join(name);
        let args = ["-s", script.to_str().expect("UTF-8"), "--ok", "404"];
        // ARGS follow the URL.
        let found = statuses(&server, &dir, &args, &["--", KEYS]);
        let found: BTreeSet<u16> = found.iter().map(|(_, status)| *status).collect();
        let wanted: BTreeSet<u16> = statuses_expected.iter().copied().collect();
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn scripts_get_their_arguments_and_may_print_at_the_end() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let script = dir.path().join("args.lua");
    std::fs::write(
        &script,
        "function init(args) wrk.path = '/v0/entity?id=' .. args[1] .. args[2]; wrk.method = 'PUT'; wrk.body = args[0] end\n\
         function done(summary, latency, requests) io.write('requests: ' .. summary.requests .. '\\n') end\n",
    )
    .expect("writable");
    let url = format!("http://{}/", server.addr());
    let done =
        run_load(load_command().args(SMALL).arg("-s").arg(&script).args([&url, "--", "a", "-b"]));
    assert_eq!(done.code, Some(0), "{done:?}");
    let classic = Classic::parse(&done.stdout);
    classic.assert_clean();
    assert!(done.stdout.contains(&format!("requests: {}\n", classic.requests)), "{}", done.stdout);
    let stored =
        server.exchange(b"GET /v0/entity?id=a-b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(stored.ends_with(url.as_bytes()), "{}", String::from_utf8_lossy(&stored));
}

#[test]
fn a_failing_script_is_reported_with_its_line() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let at_start = "local x = nil\nx()\n";
    let on_the_way = "local n = 0\nfunction request()\n  n = n + 1\n  if n > 20 then error('enough') end\n  return wrk.format()\nend\n";
    for (text, line) in [(at_start, ":2:"), (on_the_way, ":4:"), ("function (", ":1:")] {
        let script = dir.path().join("broken.lua");
        std::fs::write(&script, text).expect("writable");
        let done = load(
            &server,
            &["-d10m", "-R400", "--quiet", "-s", script.to_str().expect("ASCII")],
            "/v0/status",
        );
        assert_eq!(done.code, Some(1), "{text}: {done:?}");
        assert!(
            done.stderr.contains("broken.lua") && done.stderr.contains(line),
            "{text}: {done:?}"
        );
    }
}
