//! Files and exit codes of `kvant load` agree with its text.

use crate::kvant_command::{TempDir, run_kvant};
use crate::load::{Classic, good_load, load};
use crate::server_process::TestServer;
use kvant_load::Histogram;
use kvant_load::histogram::encoded;
use kvant_load::report::json::ResultFile;
use std::path::Path;

const SMALL: [&str; 6] = ["-t2", "-c4", "-d1200ms", "-R300", "-L", "--quiet"];

fn text(path: &Path) -> &str {
    path.to_str().expect("ASCII")
}

#[test]
fn files_agree_with_the_text() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let [json, hlog, hgrm] = ["new/a.json", "a.hlog", "a.hgrm"].map(|name| dir.path().join(name));
    let files = [
        "--json",
        text(&json),
        "--hlog",
        text(&hlog),
        "--hgrm",
        text(&hgrm),
        "-H",
        "Authorization: hush",
        "--seed",
        "5",
    ];
    let printed = good_load(&server, &[&SMALL[..], &files].concat(), "/v0/status");
    let classic = Classic::parse(&printed);
    classic.assert_clean();

    let result = ResultFile::read(&json).expect("a result");
    assert_eq!(result.config.seed, 5);
    assert!(!result.command.join(" ").contains("hush"), "{:?}", result.command);
    let [phase] = &result.phases[..] else { panic!("one phase: {}", result.phases.len()) };
    assert_eq!(phase.outcome.total.completed, classic.requests);
    assert_eq!(phase.outcome.total.planned, 360);
    assert_eq!(phase.response.count(), classic.requests);

    // The percentiles in the text are those of the merged log.
    let log = std::fs::read_to_string(&hlog).expect("written");
    let mut merged = Histogram::new();
    for line in log.lines().filter(|line| line.starts_with("Tag=GET%20/v0/status/response,")) {
        let text = line.rsplit(',').next().expect("a histogram");
        merged.add(&encoded::decode(text).expect("a histogram"));
    }
    assert_eq!(merged.count(), classic.requests);
    for &(value_ms, percentile, _) in &classic.spectrum {
        let of_log_ms = merged.percentile_ns(percentile * 100.0) as f64 / 1e6;
        assert!(
            (of_log_ms - value_ms).abs() <= 0.001 + value_ms * 0.001,
            "{percentile}: {of_log_ms} {value_ms}"
        );
    }

    let plotted = std::fs::read_to_string(&hgrm).expect("written");
    let rows = plotted
        .lines()
        .filter(|line| !line.starts_with('#') && line.split_whitespace().count() == 4)
        .count();
    assert!(rows >= classic.spectrum.len(), "{plotted}");
}

/// The server runs as the same user on this machine; otherwise it counts as one of the others.
#[test]
fn the_server_is_distinguished_from_other_processes() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let json = dir.path().join("a.json");
    let args = ["-t1", "-c4", "-d1s", "-R0", "--quiet", "--json", text(&json)];
    let printed = good_load(&server, &args, "/v0/status");
    let result = ResultFile::read(&json).expect("a result");
    let phase = &result.phases[0].outcome;
    let machine = phase.machine.expect("Linux reports it");
    let server_part = machine.server_part.expect("it listens on this machine");
    assert!(server_part > 0.0 && machine.generator_part > 0.0, "{machine:?}");
    assert!(!machine.others_include_server, "{machine:?}");
    assert!(phase.seconds[0].machine.is_some(), "{:?}", phase.seconds);
    let line = printed.lines().find(|line| line.starts_with("  CPU use: generator "));
    let line = line.unwrap_or_else(|| panic!("{printed}"));
    for part in [", server ", ", others ", ", stolen "] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn steps_are_phases_of_one_result() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let json = dir.path().join("a.json");
    let args = ["-t1", "-c1", "-d200ms", "-R100,200", "--quiet", "--json", text(&json)];
    good_load(&server, &args, "/v0/status");
    let result = ResultFile::read(&json).expect("a result");
    let planned: Vec<u64> = result.phases.iter().map(|phase| phase.outcome.total.planned).collect();
    assert_eq!(planned, [20, 40]);
    // One distribution cannot describe two rates.
    let hgrm = dir.path().join("a.hgrm");
    assert_eq!(
        load(&server, &[&args[..5], &["--hgrm", text(&hgrm)]].concat(), "/v0/status").code,
        Some(2)
    );
}

#[test]
fn an_unusable_file_is_reported_before_the_load() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    // A directory.
    let taken = text(dir.path());
    for option in ["--json", "--hlog", "--hgrm"] {
        let done = load(&server, &[&SMALL[..], &[option, taken]].concat(), "/v0/status");
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{option}: {done:?}");
        assert!(done.stderr.contains(taken), "{option}: {done:?}");
    }
    for args in [
        &["-s", "no.lua"][..],
        &["--baseline", "no.json", "--assert", "p99<=base*1.1"],
        &["--cacert", "no.pem"],
    ] {
        let done = load(&server, &[&SMALL[..], args].concat(), "/v0/status");
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{args:?}: {done:?}");
        assert!(done.stderr.contains(args[1]), "{args:?}: {done:?}");
    }
    assert_eq!(run_kvant(&["load", "compare", "no-a.json", "no-b.json"]).code, Some(1));
}

#[test]
fn all_assertions_are_reported_and_decide_the_exit_code() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let json = dir.path().join("a.json");
    let assert = |asserts: &[&str], path: &str| {
        let asserts: Vec<&str> = asserts.iter().flat_map(|assert| ["--assert", assert]).collect();
        load(&server, &[&SMALL[..], &asserts, &["--json", text(&json)]].concat(), path)
    };
    // Assertions that hold on a slow machine.
    let held = assert(&["errors==0", "completed>0", "max<10m"], "/v0/status");
    assert_eq!(held.code, Some(0), "{held:?}");
    assert_eq!(held.stdout.matches(": holds (").count(), 3, "{}", held.stdout);

    // 404 is a failure here.
    let broken = assert(&["max<10m", "errors==0", "errors<50%"], "/v0/entity?id=none");
    assert_eq!(broken.code, Some(3), "{broken:?}");
    assert_eq!(broken.stdout.matches(": broken (").count(), 2, "{}", broken.stdout);
    let result = ResultFile::read(&json).expect("written although assertions broke");
    let met: Vec<bool> =
        result.assertions.iter().map(|assertion| assertion.checked.is_met).collect();
    assert_eq!(met, [true, false, false]);
    let accepted = load(
        &server,
        &[&SMALL[..], &["--ok", "404", "--assert", "errors==0"]].concat(),
        "/v0/entity?id=none",
    );
    assert_eq!(accepted.code, Some(0), "{accepted:?}");

    // 4 or 3, depending on how late this machine was.
    let slow = assert(&["p50<1us"], "/v0/status");
    assert!(matches!(slow.code, Some(3 | 4)), "{slow:?}");
}

#[test]
fn runs_are_compared_with_earlier_ones() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let [a, b] = ["a.json", "b.json"].map(|name| dir.path().join(name));
    good_load(&server, &[&SMALL[..], &["--json", text(&a)]].concat(), "/v0/status");
    let against = ["--json", text(&b), "--baseline", text(&a)];
    let asserts = ["--assert", "rate<=base*100000", "--assert", "max<=base*100000"];
    let printed = good_load(&server, &[&SMALL[..], &against, &asserts].concat(), "/v0/status");
    assert!(printed.contains("baseline "), "{printed}");

    let compared = run_kvant(&["load", "compare", text(&a), text(&b)]);
    assert_eq!((compared.code, compared.stderr.as_str()), (Some(0), ""), "{compared:?}");
    for part in ["a.json", "b.json", "p99"] {
        assert!(compared.stdout.contains(part), "{}", compared.stdout);
    }
    // Not a result.
    std::fs::write(&b, "{}").expect("writable");
    let rejected = run_kvant(&["load", "compare", text(&a), text(&b)]);
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("b.json"), "{rejected:?}");
}

#[test]
fn a_search_without_a_result_is_reported_and_written() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let json = dir.path().join("a.json");
    let args = [
        "-t1",
        "-c1",
        "-d100ms",
        "--warmup",
        "0",
        "--find-max",
        "--slo",
        "p50<1us",
        "--json",
        text(&json),
    ];
    let done = load(&server, &[&args[..], &["--quiet"]].concat(), "/v0/status");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stdout.contains("\nMaximum: no rate holds"), "{}", done.stdout);
    let result = ResultFile::read(&json).expect("a result");
    let found = result.find_max.expect("what was found");
    assert_eq!((found.rate_max_per_s, found.goals), (None, vec!["p50<1us".to_owned()]));
    assert_eq!(found.points.len(), result.phases.len());
    assert_eq!(result.phases[0].label, "saturation");
}
