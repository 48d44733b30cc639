//! However a run of `kvant lab` ends, its directory is readable, and no process and no temporary
//! store is left: a signal once and twice, `kill -9` of a subject, a full disk, at random moments
//! and while the report is written. `kill -9` of the lab itself leaves what `--resume` ends.
//!
//! `KVANT_LAB_MOMENTS` says how many moments of each (`cargo xtask torture lab`); `KVANT_TEST_SEED`
//! repeats them.

use crate::clients::{number, seed};
use crate::kvant_command::{TempDir, kvant};
use crate::lab::processes_of;
use crate::small_disk::SmallDisk;
use kvant_env::rng::Rng;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MOMENTS_DEFAULT: u64 = 2;
/// About the length of a run.
const RUN_MS: u64 = 3_000;
/// Longest wait of a test, also where others have nearly all of the processors and phases repeat.
const WAIT_MAX: Duration = Duration::from_secs(240);

const PLAN: &str = r#"
repeats = 2
connections = 4
server-cpus = [0]
[subject.kvant]
serve = { memory = "64MiB" }
[data]
keys = 5000
[workload]
put = "put"
get = "get"
[phase]
held = { rate = 300, duration = "400ms", warmup = "50ms" }
"#;

/// A running `kvant lab run`.
struct LabRun {
    dir: PathBuf,
    child: Child,
}

impl LabRun {
    /// Starts a run in `dir`, and waits until its directory exists.
    fn start(dir: &Path) -> LabRun {
        LabRun::start_plan(dir, PLAN)
    }

    fn start_plan(dir: &Path, plan: &str) -> LabRun {
        fs::write(dir.join("plan.toml"), plan).expect("the directory is writable");
        let stderr = fs::File::create(dir.with_extension("err")).expect("writable");
        let mut command = kvant();
        let args = ["lab", "run", "plan.toml", "-o", "run", "--scratch", "stores"];
        command.args(args).current_dir(dir);
        let child = command.stdout(Stdio::null()).stderr(stderr).spawn().expect("it starts");
        let run = LabRun { dir: dir.to_path_buf(), child };
        let start = Instant::now();
        while !run.dir.join("run/run.json").exists() {
            assert!(start.elapsed() < WAIT_MAX, "no run began: {}", run.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
        run
    }

    /// Runs what is missing.
    fn resume(&mut self) {
        let mut command = kvant();
        let args = ["lab", "run", "plan.toml", "--quiet", "--resume", "run", "--scratch", "stores"];
        command.args(args);
        let status = command.current_dir(&self.dir).stdout(Stdio::null()).status();
        // 1: others have disturbed all of it.
        assert!(matches!(status.expect("it runs").code(), Some(0 | 1)));
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        status.expect("kill(1) exists");
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.dir.with_extension("err")).expect("it was created")
    }

    /// The exit code.
    fn wait(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status.code();
            }
            assert!(start.elapsed() < WAIT_MAX, "it does not end: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Nothing is left, and what was written is readable. Returns the state of the run.
    fn check(&self) -> String {
        let left = processes_of(&self.dir);
        assert!(left.is_empty(), "{left:?}\n{}", self.stderr());
        let stores = fs::read_dir(self.dir.join("stores")).into_iter().flatten();
        assert_eq!(stores.count(), 0, "{}", self.stderr());
        assert!(!self.dir.join("run/cleanup.json").exists(), "{}", self.stderr());
        let text = fs::read_to_string(self.dir.join("run/run.json")).expect("there is a run");
        let run: Value = serde_json::from_str(&text).expect("the run is whole");
        let journal = fs::read_to_string(self.dir.join("run/journal.jsonl")).unwrap_or_default();
        let whole = &journal[..journal.rfind('\n').map_or(0, |end| end + 1)];
        for line in whole.lines() {
            let attempt: Value = serde_json::from_str(line).expect("an attempt is whole");
            if attempt["verdict"]["verdict"] == "failed" {
                continue;
            }
            let number = format!("{:04}", attempt["number"].as_u64().expect("a number"));
            let file = self.dir.join("run/attempts").join(number).join("load.json");
            let text = fs::read_to_string(&file).expect("an attempt has its result");
            serde_json::from_str::<Value>(&text).expect("the result is whole");
        }
        let mut report = kvant();
        let report = report.args(["lab", "report", "run"]).current_dir(&self.dir).output();
        assert!(report.expect("it runs").status.success());
        run["state"]["state"].as_str().expect("a state").to_owned()
    }
}

impl Drop for LabRun {
    fn drop(&mut self) {
        // Both succeed on a reaped process.
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
        for (pid, _) in processes_of(&self.dir) {
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
            killed.expect("kill(1) exists");
        }
    }
}

/// Random moments of a run.
fn moments(name: &str) -> Vec<Duration> {
    let mut rng = Rng::new(seed(name));
    let count = number("KVANT_LAB_MOMENTS").unwrap_or(MOMENTS_DEFAULT);
    // Spread over the run.
    let part_ms = RUN_MS / count;
    (0..count).map(|at| Duration::from_millis(at * part_ms + rng.below(part_ms))).collect()
}

#[test]
fn a_signal_ends_a_run_with_what_was_measured() {
    let signals = ["-INT", "-HUP", "-QUIT", "-TERM"];
    for (moment, signal) in moments("lab-signal").into_iter().zip(signals.into_iter().cycle()) {
        let dir = TempDir::new();
        let mut run = LabRun::start(dir.path());
        std::thread::sleep(moment);
        run.signal(signal);
        let code = run.wait();
        let state = run.check();
        println!("{signal} after {moment:?}: {state}");
        match state.as_str() {
            "interrupted" => {
                assert_eq!(code, Some(0), "{}", run.stderr());
                run.resume();
                assert_eq!(run.check(), "complete", "{}", run.stderr());
            }
            "complete" => {}
            other => panic!("{other}: {}", run.stderr()),
        }
    }
}

#[test]
fn a_second_sigint_ends_it_at_once() {
    for moment in moments("lab-second-sigint") {
        let dir = TempDir::new();
        let mut run = LabRun::start(dir.path());
        std::thread::sleep(moment);
        run.signal("-INT");
        run.signal("-TERM");
        let code = run.wait();
        println!("two signals after {moment:?}: {code:?}");
        assert!(matches!(code, Some(0 | 1 | 130)), "{code:?}: {}", run.stderr());
        run.check();
    }
}

#[test]
fn a_killed_subject_is_restarted() {
    for moment in moments("lab-kill") {
        let dir = TempDir::new();
        let mut run = LabRun::start(dir.path());
        std::thread::sleep(moment);
        let subject =
            processes_of(dir.path()).into_iter().find(|(_, line)| line.contains(" serve "));
        if let Some((pid, _)) = &subject {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let is_bound = status.is_empty() || status.contains("Cpus_allowed_list:\t0\n");
            assert!(is_bound, "{status}");
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
            killed.expect("kill(1) exists");
        }
        let code = run.wait();
        let state = run.check();
        println!("killed {} after {moment:?}: {code:?}", subject.is_some());
        let is_disturbed = code == Some(1) && run.stderr().contains("no attempt counts");
        assert!(state == "complete" && (code == Some(0) || is_disturbed), "{}", run.stderr());
    }
}

#[test]
fn a_full_disk_ends_a_run_that_stays_readable() {
    for moment in moments("lab-disk") {
        let Some(disk) = SmallDisk::mount(200) else { return };
        let dir = disk.data();
        fs::create_dir_all(&dir).expect("there is room");
        let mut run = LabRun::start(&dir);
        std::thread::sleep(moment);
        let is_over = AtomicBool::new(false);
        let code = std::thread::scope(|scope| {
            scope.spawn(|| disk.keep_filling(&is_over));
            let code = run.wait();
            is_over.store(true, Ordering::Relaxed);
            code
        });
        disk.free();
        let state = run.check();
        println!("a full disk after {moment:?}: {code:?}, {state}");
        if state != "complete" {
            assert_eq!(code, Some(1), "{}", run.stderr());
            assert!(
                run.stderr().contains("o space") || run.stderr().contains("os error 28"),
                "{}",
                run.stderr()
            );
        }
    }
}

/// A subject that is no child of the lab: the kernel does not kill it with the lab.
const WRAPPED: &str = r#"command = ["sh", "-c", "PROGRAM serve --memory 64MiB --listen 127.0.0.1:{port} --data {data} & wait"]
ready = "/v0/status""#;

#[test]
fn what_a_killed_lab_leaves_is_ended_when_the_run_is_resumed() {
    let wrapped = WRAPPED.replace("PROGRAM", env!("CARGO_BIN_EXE_kvant"));
    let wrapped = PLAN.replace(r#"serve = { memory = "64MiB" }"#, &wrapped);
    assert!(wrapped.contains("wait"));
    let plans = [PLAN, &wrapped];
    for (moment, plan) in moments("lab-killed").into_iter().zip(plans.into_iter().cycle()) {
        let dir = TempDir::new();
        let mut run = LabRun::start_plan(dir.path(), plan);
        std::thread::sleep(moment);
        run.signal("-KILL");
        run.wait();
        if plan == PLAN {
            // The kernel has killed the subject.
            let start = Instant::now();
            while !processes_of(dir.path()).is_empty() {
                assert!(start.elapsed() < WAIT_MAX, "{:?}", processes_of(dir.path()));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        println!("killed after {moment:?}, left: {:?}", processes_of(dir.path()));
        run.resume();
        assert_eq!(run.check(), "complete", "{}", run.stderr());
    }
}

/// All reports that there are, are whole.
fn check_reports(dir: &Path) {
    let read = |name: &str| fs::read_to_string(dir.join("run").join(name)).ok();
    if let Some(json) = read("report.json") {
        serde_json::from_str::<Value>(&json).expect("the report is whole");
    }
    for (name, end) in [("report.md", "\n"), ("report.html", "</html>\n")] {
        let text = read(name).unwrap_or_else(|| end.to_owned());
        assert!(
            text.ends_with(end),
            "{name} ends with {:?}",
            &text[text.len().saturating_sub(80)..]
        );
    }
}

/// Holds up a report when it writes its page, until the process is ended.
struct HeldUp(PathBuf);

impl HeldUp {
    fn page_of(run: &Path) -> HeldUp {
        let pipe = run.join("report.html.new");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo(1) exists").success());
        HeldUp(pipe)
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        fs::remove_file(&self.0).expect("it was made");
    }
}

#[test]
fn an_end_while_the_report_is_written_leaves_whole_files() {
    for number in 0..moments("lab-report").len() {
        let dir = TempDir::new();
        let mut run = LabRun::start(dir.path());
        let files = dir.path().join("run");
        let held_up = HeldUp::page_of(&files);
        let start = Instant::now();
        while !files.join("report.md").exists() {
            assert!(start.elapsed() < WAIT_MAX, "no report: {}", run.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
        let (signals, expected): (&[&str], _) =
            [(&["-HUP", "-TERM"][..], Some(130)), (&["-KILL"], None)][number % 2];
        signals.iter().for_each(|signal| run.signal(signal));
        assert_eq!(run.wait(), expected, "{}", run.stderr());
        check_reports(dir.path());
        assert!(!files.join("report.html").exists());
        drop(held_up);
        run.check();
        let names = ["report.json", "report.md", "report.html"];
        let exists = |name: &&str| files.join(name).exists();
        assert!(names.iter().all(exists), "`kvant lab report` has not written all");

        // The former page stays until the next one is whole.
        let held_up = HeldUp::page_of(&files);
        fs::remove_file(files.join("report.md")).expect("it was written");
        let mut command = kvant();
        command.args(["lab", "report", "run"]).current_dir(dir.path()).stdout(Stdio::null());
        let mut report = command.spawn().expect("it starts");
        while !files.join("report.md").exists() {
            assert!(start.elapsed() < WAIT_MAX, "no report");
            std::thread::sleep(Duration::from_millis(5));
        }
        report.kill().expect("it is ours");
        report.wait().expect("it is ours");
        drop(held_up);
        assert!(names.iter().all(exists), "a report is gone");
        check_reports(dir.path());
    }
}
