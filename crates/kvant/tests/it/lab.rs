//! `kvant lab` on real servers: what a run stores, restores and records.
//!
//! A busy machine disturbs attempts. These tests look at what does not depend on that.

use crate::kvant_command::{Finished, TempDir, kvant, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two servers with the same data: a Kvant, and the same program as any other command.
const PLAN: &str = r#"
title = "Two servers"
repeats = 1
connections = 4
[subject.kvant]
serve = { workers = 2, memory = "64MiB" }
[subject.other]
command = ["PROGRAM", "serve", "--memory", "64MiB", "--listen", "127.0.0.1:{port}", "--data", "{data}"]
ready = "/v0/status"
[data]
keys = 2000
value-bytes = 50
deleted = 0.25
ttl = "1h"
[workload]
put = "put"
[workload.get]
kind = "get"
ok = [404]
beside = { kind = "put", rate = 100, connections = 1 }
[workload.crowd]
kind = "get"
ok = [404]
beside = { kind = "get", idle = true, connections = 50 }
[phase]
closed = { closed = true, duration = "500ms", warmup = "50ms", workloads = ["put"] }
held = { rate = 400, duration = "500ms", warmup = "50ms", workloads = ["get", "crowd"], profile = true }
"#;

fn write_plan(dir: &Path) {
    let text = PLAN.replace("PROGRAM", env!("CARGO_BIN_EXE_kvant"));
    fs::write(dir.join("plan.toml"), text).expect("the directory is writable");
}

pub(crate) fn kvant_in(dir: &Path, args: &[&str]) -> Finished {
    run(kvant().args(args).current_dir(dir))
}

fn lab(dir: &Path, args: &[&str]) -> Finished {
    kvant_in(dir, &[&["lab", "run", "plan.toml", "-o", "run"], args].concat())
}

pub(crate) fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Command lines of processes that name `dir`.
pub(crate) fn processes_of(dir: &Path) -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").expect("there is a /proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        is_named(dir, &line).then_some((pid, line))
    })
    .collect()
}

/// Whether a command line has the path of `dir`, and not that of another one with a longer name.
fn is_named(dir: &Path, line: &str) -> bool {
    let dir = dir.to_str().expect("UTF-8");
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric());
    line.match_indices(dir).any(|(at, _)| !goes_on(&line[at + dir.len()..]))
}

#[test]
fn a_process_of_a_directory_with_a_longer_number_is_another_one() {
    let dir = Path::new("/t/it-7-1");
    assert!(is_named(dir, "kvant --data /t/it-7-10/x --log=/t/it-7-1/log"));
    assert!(is_named(dir, "kvant --data /t/it-7-1"));
    assert!(!is_named(dir, "kvant --data /t/it-7-10/x"));
}

#[test]
fn servers_are_filled_restored_and_recorded() {
    let dir = TempDir::new();
    write_plan(dir.path());
    let scratch = dir.path().join("stores");
    let done = lab(dir.path(), &["--scratch", scratch.to_str().expect("UTF-8")]);
    // Others may have disturbed all of it.
    let is_disturbed = done.stderr.contains("no attempt counts");
    assert!(done.code == Some(0) || (done.code == Some(1) && is_disturbed), "{done:?}");
    assert!(done.stdout.starts_with("Two servers\n"), "{done:?}");
    let stores: Vec<_> = fs::read_dir(&scratch).expect("it was made").collect();
    assert!(stores.is_empty(), "{stores:?}");
    assert_eq!(processes_of(dir.path()), []);

    let run = json(&dir.path().join("run/run.json"));
    assert_eq!(run["state"]["state"], "complete");
    assert_eq!(run["data"]["key_count"], 2000);
    assert_eq!(run["data"]["fill_s"].as_object().expect("an object").len(), 2, "{}", run["data"]);
    // Both have stored the same.
    let fingerprints: Vec<&str> = done
        .stderr
        .lines()
        .filter_map(|line| line.split_once("fingerprint ")?.1.split(',').next())
        .collect();
    assert_eq!(fingerprints.len(), 2, "{}", done.stderr);
    assert_eq!(fingerprints[0], fingerprints[1]);
    assert_eq!(run["data"]["fingerprint"], fingerprints[0]);

    let journal = fs::read_to_string(dir.path().join("run/journal.jsonl")).expect("there is one");
    let attempts: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(attempts.len() >= 6, "{journal}");
    for attempt in &attempts {
        let case = &run["cases"][attempt["case"].as_u64().expect("a number") as usize];
        let number = format!("{:04}", attempt["number"].as_u64().expect("a number"));
        let files = dir.path().join("run/attempts").join(number);
        check_attempt(&files, attempt, case);
    }
    let log = fs::read_to_string(dir.path().join("run/subjects/kvant.log")).expect("there is one");
    assert!(log.contains(" stopped"), "{log}");
}

fn check_attempt(files: &Path, attempt: &Value, case: &Value) {
    assert_ne!(attempt["verdict"]["verdict"], "failed", "{attempt}");
    let is_valid = attempt["verdict"]["verdict"] == "valid";
    let phase = &json(&files.join("load.json"))["phases"][0];
    let ops = phase["ops"].as_array().expect("a list");
    let status =
        |status: &str| -> f64 { ops.iter().filter_map(|op| op["statuses"][status].as_f64()).sum() };
    let beside = files.join("beside.json");
    match case["workload"].as_str() {
        Some("put") => assert!(status("201") > 100.0, "{case} {phase}"),
        // The puts before have stored nearly all of the deleted keys: without restoring the data
        // they would be found.
        Some("get" | "crowd") => {
            let responses = status("200") + status("404");
            let absent_part = status("404") / responses;
            // A machine that stands still gives few.
            let is_enough = responses >= 100.0;
            assert!(!is_enough || (0.12..0.38).contains(&absent_part), "{absent_part} {case}");
            assert!(is_enough || !is_valid, "{phase}");
            let beside = &json(&beside)["phases"][0];
            assert!(beside["completed"].as_u64() >= Some(10), "{beside}");
        }
        other => panic!("{other:?}"),
    }
    // Both speak Kvant's interface for operators.
    let stats = json(&files.join("stats.json"));
    assert!(stats[0]["stats"]["engine"].is_object(), "{stats}");
    let samples = &json(&files.join("watch.json"))["samples"];
    let samples = samples.as_array().expect("a list");
    let last = samples.last().expect("there are samples");
    assert!(last["server_rss_bytes"].as_u64() > Some(1 << 20), "{last}");
    if case["workload"] == "put" {
        // The account goes on until the server is idle, for 300 ms at least.
        let measured_ns = phase["measured_ns"].as_u64().expect("a number");
        let load_end_ns = attempt["measure_start_ns"].as_u64().map(|start| start + measured_ns);
        let watched_ns = last["at_ns"].as_u64().zip(load_end_ns).map(|(last, end)| last - end);
        assert!(watched_ns > Some(250_000_000), "{watched_ns:?}");
    }
    let start_ns = attempt["start_ns"].as_u64();
    let end_ns = attempt["end_ns"].as_u64();
    for event in json(&files.join("events.json")).as_array().expect("a list") {
        let event_ns = event["end_ns"].as_u64().or(end_ns);
        assert!(event_ns >= start_ns && event["start_ns"].as_u64() <= end_ns, "{event}");
    }
    let is_held = case["kind"] == "hold";
    assert_eq!(files.join("history.json").exists(), is_held, "{case}");
    if is_held {
        let history = json(&files.join("history.json"));
        let windows = history["windows"].as_array().expect("a list");
        let of_load = |window: &&Value| window["start_ns"].as_u64() < end_ns;
        assert!(windows.iter().filter(of_load).count() > 2, "{history}");
    }
    let recording = files.join("profile.kprof");
    assert_eq!(recording.exists(), case["phase"] == "held" && cfg!(feature = "profiler"));
    if recording.exists() {
        let shown = kvant()
            .args(["profile", "--format", "collapsed", "--kind", "cpu", "-o", "-"])
            .arg(&recording)
            .output();
        assert!(shown.expect("it runs").status.success());
    }
}

const PAUSED: &str = r#"
repeats = 1
connections = 1
[subject.kvant]
serve = { engine = "memory" }
[workload]
status = "status"
[phase]
held = { rate = 100, duration = "3s", warmup = "50ms" }
"#;

#[test]
fn a_paused_generator_disturbs_its_attempt() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PAUSED).expect("writable");
    let mut command = kvant();
    command.args(["lab", "run", "plan.toml", "-o", "run", "--quiet"]).current_dir(dir.path());
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let log = dir.path().join("run/attempts/0001/load.hlog");
    // The first intervals are written while the load goes on.
    let start = Instant::now();
    while fs::metadata(&log).map_or(0, |log| log.len()) < 500 {
        assert!(start.elapsed() < Duration::from_secs(60), "no load began");
        std::thread::sleep(Duration::from_millis(10));
    }
    for signal in ["-STOP", "-CONT"] {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill(1) exists").success());
        std::thread::sleep(Duration::from_millis(600));
    }
    child.wait().expect("it is ours");
    let journal = fs::read_to_string(dir.path().join("run/journal.jsonl")).expect("there is one");
    let first: Value =
        serde_json::from_str(journal.lines().next().expect("an attempt")).expect("JSON");
    assert_eq!(first["verdict"]["verdict"], "disturbed", "{first}");
    let why = first["verdict"]["why"].as_str().expect("a text");
    assert!(why.starts_with("the generator stood still for "), "{why}");
    assert!(journal.lines().count() > 1, "it was not repeated: {journal}");
}

const EXPIRING: &str = r#"
repeats = 20
connections = 2
[subject.kvant]
program = "bin/server"
serve = { memory = "64MiB" }
[data]
keys = 500
ttl = "8s"
[workload]
get = "get"
[phase]
held = { rate = 200, duration = "300ms", warmup = "50ms" }
"#;

#[test]
fn data_that_expire_are_stored_again_and_a_program_is_found_beside_its_plan() {
    let dir = TempDir::new();
    let plan_dir = dir.path().join("plans");
    fs::create_dir_all(plan_dir.join("bin")).expect("writable");
    fs::write(plan_dir.join("plan.toml"), EXPIRING).expect("writable");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kvant"), plan_dir.join("bin/server"))
        .expect("writable");
    let mut command = kvant();
    command.args(["lab", "run", "plans/plan.toml", "-o", "run"]).current_dir(dir.path());
    let start = Instant::now();
    let done = run(&mut command);
    let is_disturbed = done.stderr.contains("no attempt counts");
    assert!(done.code == Some(0) || (done.code == Some(1) && is_disturbed), "{done:?}");
    assert!(start.elapsed() > Duration::from_secs(8), "nothing can have expired");
    let written = json(&dir.path().join("run/run.json"));
    let version = written["subjects"][0]["version"].as_str().expect("it says its version");
    assert!(version.starts_with("kvant "), "{version}");
    let journal = fs::read_to_string(dir.path().join("run/journal.jsonl")).expect("there is one");
    for line in journal.lines() {
        let attempt: Value = serde_json::from_str(line).expect("JSON");
        let number = format!("{:04}", attempt["number"].as_u64().expect("a number"));
        let load = json(&dir.path().join("run/attempts").join(number).join("load.json"));
        let statuses = &load["phases"][0]["ops"][0]["statuses"];
        assert_eq!(statuses["404"].as_u64().unwrap_or(0), 0, "{statuses}");
        let is_valid = attempt["verdict"]["verdict"] == "valid";
        assert!(!is_valid || statuses["200"].as_u64() > Some(20), "{statuses}");
    }
}

#[test]
fn a_report_without_a_place_for_notes_is_kept() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PAUSED.replace("3s", "200ms")).expect("writable");
    let run_report = || run(kvant().args(["lab", "report", "run"]).current_dir(dir.path()));
    lab(dir.path(), &["--quiet"]);
    let file = |name: &str| dir.path().join("run").join(name);
    for (text, kept) in [("Mine.\n", "report.md.old"), ("Other.\n", "report.md.old2")] {
        fs::write(file("report.md"), text).expect("writable");
        let done = run_report();
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.stderr.contains(kept), "{done:?}");
        assert_eq!(fs::read_to_string(file(kept)).expect("it is kept"), text);
    }
    // Notes between the marks need no copy.
    let report = fs::read_to_string(file("report.md")).expect("there is one");
    let noted = report.replace("<!-- notes -->", "<!-- notes -->\nMine.");
    fs::write(file("report.md"), noted).expect("writable");
    let done = run_report();
    assert!(done.code == Some(0) && !done.stderr.contains("kept"), "{done:?}");
    assert!(fs::read_to_string(file("report.md")).expect("there is one").contains("\nMine."));
    assert!(!file("report.md.old3").exists());
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PAUSED.replace("3s", "1s")).expect("writable");
    let line = format!(
        "trap '' HUP; exec {} lab run plan.toml -o run --quiet",
        env!("CARGO_BIN_EXE_kvant")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(dir.path()).stdout(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let start = Instant::now();
    while !dir.path().join("run/attempts/0001/load.hlog").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no load began");
        std::thread::sleep(Duration::from_millis(10));
    }
    let sent = Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
    assert!(sent.expect("kill(1) exists").success());
    child.wait().expect("it is ours");
    assert_eq!(json(&dir.path().join("run/run.json"))["state"]["state"], "complete");
}

#[test]
fn plans_that_cannot_be_read_are_refused_with_their_place() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), "[phase]\nheld = { rat = 5 }\n").expect("writable");
    let done = lab(dir.path(), &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("plan.toml:2:"), "{done:?}");
    assert!(!dir.path().join("run").exists());
}

#[test]
fn shipped_plans_are_listed() {
    let done = run(kvant().args(["lab", "list"]));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.lines().any(|line| line.starts_with("seed-000 ")), "{done:?}");
}
