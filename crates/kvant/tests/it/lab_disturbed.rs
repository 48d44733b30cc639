//! A generator that is paused and a neighbour that takes the cores: `kvant lab` marks the attempt
//! that was hit, repeats it, and has it in no figure.

use crate::kvant_command::{TempDir, kvant};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait of a test. No wait comes near it.
const WAIT_MAX: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_millis(300);

const PLAN: &str = r#"
repeats = 1
connections = 4
[subject.kvant]
serve = { memory = "64MiB", engine = "memory" }
[workload.status]
method = "GET"
path = "/v0/status"
[phase]
load = { LOAD, duration = "2s", warmup = "50ms" }
"#;

/// Processes that compute until dropped.
struct Loops(Vec<Child>);

impl Loops {
    /// Two for each CPU.
    fn start() -> Loops {
        let count = std::thread::available_parallelism().map_or(1, |cpus| cpus.get()) * 2;
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Loops((0..count).map(|_| command.spawn().expect("there is a shell")).collect())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }
}

/// Runs the plan with a load and disturbs it in the middle of its first attempt.
fn check(load: &str, disturb: impl FnOnce(&Child)) {
    let dir = TempDir::new();
    let text = PLAN.replace("LOAD", load);
    fs::write(dir.path().join("plan.toml"), text).expect("the directory is writable");
    let mut command = kvant();
    command.args(["lab", "run", "plan.toml", "-o", "run", "--quiet"]).current_dir(dir.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let run = dir.path().join("run");
    wait_for(&run.join("attempts/0001/load.hlog"));
    std::thread::sleep(Duration::from_millis(400));
    disturb(&child);
    // The attempt is repeated; the result of that says nothing more.
    wait_for(&run.join("attempts/0002"));
    signal(&child, "-INT");
    child.wait().expect("it is ours");

    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("there is a journal");
    let attempts: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(attempts[0]["verdict"]["verdict"], "disturbed", "{journal}");
    let report = fs::read_to_string(run.join("report.json")).expect("there is a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    for figures in report["figures"].as_array().expect("a list") {
        let counted = figures["attempts"].as_array().expect("a list");
        assert!(!counted.contains(&attempts[0]["number"]), "{figures}");
    }
}

fn wait_for(file: &Path) {
    let start = Instant::now();
    while !file.exists() {
        assert!(start.elapsed() < WAIT_MAX, "no {}", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill(1) exists").success());
}

fn pause(child: &Child) {
    signal(child, "-STOP");
    std::thread::sleep(PAUSE);
    signal(child, "-CONT");
}

#[test]
fn a_paused_generator_is_repeated_and_in_no_figure() {
    check("rate = 100", pause);
    check("closed = true", pause);
}

#[test]
fn a_neighbour_that_takes_the_cores_is_in_no_figure() {
    check("rate = 100", |_| {
        let _loops = Loops::start();
        // Beyond the end of the attempt.
        std::thread::sleep(Duration::from_secs(1));
    });
}
