//! Runs of plans: what is written, what is repeated, what is resumed.

use crate::fake_machine::FakeMachine;
use crate::server::Server;
use kvant_env::Env;
use kvant_lab::analyse;
use kvant_lab::conduct::{self, Ended, Options, Progress, Stop};
use kvant_lab::model::Report;
use kvant_lab::plan::Plan;
use kvant_lab::record::{Attempt, AttemptVerdict, Run, RunState, Watch};
use kvant_load::histogram::encoded;
use kvant_load::report::json::ResultFile;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed at the end of the test, but kept after a failure.
pub(crate) struct TempDir(pub(crate) PathBuf);

impl TempDir {
    pub(crate) fn new() -> TempDir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("lab-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

const PLAN: &str = r#"
title = "A trial"
repeats = 2
connections = 2
[subject.small]
SERVER
[workload.status]
method = "GET"
path = "/v0/status"
[phase]
closed = { closed = true, duration = "600ms", warmup = "50ms" }
held = { rate = "2%", duration = "700ms", warmup = "50ms" }
steps = { steps = [50, 100], duration = "300ms", warmup = "50ms" }
"#;

/// A plan whose `SERVER` is the table of a subject.
pub(crate) fn plan(text: &str, server: &Server) -> Plan {
    let subject = format!("url = \"{}\"\nready = \"/\"\nfixed-response = true", server.url());
    let text = text.replace("SERVER", &subject);
    Plan::parse(&text, Path::new("trial.toml")).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Runs a plan in `dir/run`.
pub(crate) fn run(
    plan: &Plan,
    dir: &TempDir,
    machine: &FakeMachine,
    stop: &Stop,
    resumes: bool,
    progress: &mut Progress,
) -> kvant_base::Result<Ended> {
    run_of(Path::new("kvant"), plan, dir, machine, stop, resumes, progress)
}

/// The same with this program of subjects.
pub(crate) fn run_of(
    program: &Path,
    plan: &Plan,
    dir: &TempDir,
    machine: &FakeMachine,
    stop: &Stop,
    resumes: bool,
    progress: &mut Progress,
) -> kvant_base::Result<Ended> {
    let options = Options {
        dir: dir.0.join("run"),
        resumes,
        scratch: None,
        program: program.to_path_buf(),
        proc: machine.proc(),
    };
    conduct::run(plan, &options, &Env::posix(), stop, progress)
}

/// Runs an experiment and reads its report, as if nothing had disturbed it: a busy machine, which
/// the test cannot calm, must not change what it shows.
pub(crate) fn run_undisturbed(plan: &Plan, dir: &TempDir, machine: &FakeMachine) -> Report {
    run(plan, dir, machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    let mut lines = String::new();
    for mut attempt in journal(dir) {
        if let AttemptVerdict::Disturbed(_) = attempt.verdict {
            attempt.verdict = AttemptVerdict::Valid;
        }
        lines += &(serde_json::to_string(&attempt).unwrap() + "\n");
    }
    fs::write(dir.0.join("run/journal.jsonl"), lines).unwrap();
    analyse::analyse(&dir.0.join("run")).unwrap()
}

pub(crate) fn calm(dir: &TempDir) -> FakeMachine {
    FakeMachine::start(&dir.0.join("proc"), || false)
}

/// Whether a busy machine, which the test cannot calm, made the generator late.
fn is_generator_late(verdict: &AttemptVerdict) -> bool {
    matches!(verdict, AttemptVerdict::Disturbed(why)
        if why.contains("generator") || why.contains("send lag") || why.contains("stood still"))
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn journal(dir: &TempDir) -> Vec<Attempt> {
    let text = fs::read_to_string(dir.0.join("run/journal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_leaves_all_files_of_its_attempts() {
    let (dir, server) = (TempDir::new(), Server::start());
    let (plan, machine) = (plan(PLAN, &server), calm(&dir));
    let ended = run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    let written: Run = read(&dir.0.join("run/run.json"));
    assert_eq!(written, ended.run);
    assert_eq!((&written.state, written.title.as_str()), (&RunState::Complete, "A trial"));
    assert_eq!(written.subjects[0].version.as_deref(), Some("small/1"));
    assert_eq!(fs::read_to_string(dir.0.join("run/plan.toml")).unwrap(), plan.text);
    assert!(!dir.0.join("run/scratch").exists());
    let attempts = journal(&dir);
    assert_eq!(attempts, ended.attempts);
    for (case, repeat) in [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)] {
        let of_case: Vec<_> = attempts
            .iter()
            .filter(|attempt| (attempt.case, attempt.repeat) == (case, repeat))
            .collect();
        let last = of_case.last().unwrap_or_else(|| panic!("no attempt of case {case}"));
        let is_fine = last.verdict == AttemptVerdict::Valid || is_generator_late(&last.verdict);
        assert!(is_fine, "{last:?}");
    }
    let mut previous_end_ns = 0;
    for attempt in &attempts {
        assert!(attempt.start_ns >= previous_end_ns, "{attempt:?}");
        assert!(attempt.start_ns <= attempt.measure_start_ns, "{attempt:?}");
        assert!(attempt.measure_start_ns < attempt.end_ns, "{attempt:?}");
        previous_end_ns = attempt.end_ns;
        check_files(&dir, attempt, &written);
    }
    check_share(&dir, &attempts);
}

/// The files of an attempt agree with each other.
fn check_files(dir: &TempDir, attempt: &Attempt, run: &Run) {
    let files = dir.0.join("run/attempts").join(format!("{:04}", attempt.number));
    let result = ResultFile::read(&files.join("load.json")).unwrap();
    let result_json: serde_json::Value = read(&files.join("load.json"));
    let phases = result_json["phases"].as_array().unwrap();
    let phase_count = if run.cases[attempt.case].phase == "steps" { 2 } else { 1 };
    assert_eq!((result.phases.len(), phases.len()), (phase_count, phase_count));
    assert_eq!(result.config.connection_count, 2);
    let watch: Watch = read(&files.join("watch.json"));
    let times: Vec<u64> = watch.samples.iter().map(|sample| sample.at_ns).collect();
    assert!(times.is_sorted(), "{times:?}");
    // A machine that stands still gives fewer.
    let is_valid = attempt.verdict == AttemptVerdict::Valid;
    assert!(times.len() > if is_valid { 5 } else { 1 }, "{times:?}");
    assert!(times[0] <= attempt.measure_start_ns && *times.last().unwrap() <= attempt.end_ns);
    // The intervals of the log add up to the result.
    let log = fs::read_to_string(files.join("load.hlog")).unwrap();
    let responses = log.lines().filter(|line| line.contains("/response,"));
    let mut logged = 0;
    for line in responses {
        let fields: Vec<&str> = line.split(',').collect();
        let length_s: f64 = fields[2].parse().unwrap();
        assert!(length_s <= 0.1005, "{line}");
        logged += encoded::decode(fields[4]).unwrap().count();
    }
    let measured: u64 = result.phases.iter().map(|phase| phase.response.count()).sum();
    assert_eq!(logged, measured);
}

/// The rate that was held is a share of the maximum of the same repeat.
fn check_share(dir: &TempDir, attempts: &[Attempt]) {
    let found = |attempt: &&Attempt| attempt.case == 0 && attempt.verdict == AttemptVerdict::Valid;
    let closed = attempts.iter().find(found).expect("a closed loop is not judged by lateness");
    let files = dir.0.join("run/attempts").join(format!("{:04}", closed.number));
    let json: serde_json::Value = read(&files.join("load.json"));
    let maximum = json["phases"][0]["rate_achieved_per_s"].as_f64().unwrap();
    let held = attempts
        .iter()
        .find(|attempt| attempt.case == 1 && attempt.repeat == closed.repeat)
        .unwrap();
    let rate = held.rate_per_s.unwrap();
    assert!((rate - maximum * 0.02).abs() <= 0.5, "{rate} of {maximum}");
}

const ONE_HOLD: &str = r#"
repeats = 1
connections = 1
[subject.small]
SERVER
[workload.status]
method = "GET"
path = "/"
[phase]
held = { rate = 50, duration = "700ms", warmup = "50ms" }
"#;

#[test]
fn a_disturbed_attempt_is_repeated() {
    // Again where the machine itself stood still, which is looked at first.
    assert!((0..5).any(|_| is_repeated_after_theft()), "it stands still in every run");
}

/// Whether the first attempt was disturbed by the hypervisor; if so, whether it was repeated is
/// checked.
fn is_repeated_after_theft() -> bool {
    let (dir, server) = (TempDir::new(), Server::start());
    let second = dir.0.join("run/attempts/0002");
    let machine = FakeMachine::start(&dir.0.join("proc"), move || !second.exists());
    let plan = plan(ONE_HOLD, &server);
    let ended = run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    let AttemptVerdict::Disturbed(why) = &ended.attempts[0].verdict else {
        panic!("{:?}", ended.attempts)
    };
    if why.contains("stood still") {
        return false;
    }
    assert!(why.contains("the hypervisor took"), "{why}");
    let last = ended.attempts.last().unwrap();
    assert!(last.try_count >= 2, "{:?}", ended.attempts);
    let is_fine = last.verdict == AttemptVerdict::Valid || is_generator_late(&last.verdict);
    assert!(is_fine, "{:?}", ended.attempts);
    true
}

#[test]
fn a_machine_that_is_always_disturbed_ends_the_tries_and_counts_nothing() {
    let (dir, server) = (TempDir::new(), Server::start());
    let machine = FakeMachine::start(&dir.0.join("proc"), || true);
    let plan = plan(ONE_HOLD, &server);
    let ended = run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    assert_eq!(ended.run.state, RunState::Complete);
    let tries: Vec<u32> = ended.attempts.iter().map(|attempt| attempt.try_count).collect();
    assert_eq!(tries, [1, 2, 3]);
    assert_eq!(ended.count(|verdict| matches!(verdict, AttemptVerdict::Disturbed(_))), 3);
}

/// Requests a stop when an attempt has ended.
struct StopAfterAttempt(Stop);

impl Write for StopAfterAttempt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if String::from_utf8_lossy(bytes).contains("repeat 1") {
            self.0.request();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stopped_run_is_resumed_after_its_last_attempt() {
    let (dir, server) = (TempDir::new(), Server::start());
    let (unchanged, machine) = (plan(PLAN, &server), calm(&dir));
    let stop = Stop::default();
    let mut progress = Progress::new(Box::new(StopAfterAttempt(stop.clone())), false);
    let ended = run(&unchanged, &dir, &machine, &stop, false, &mut progress).unwrap();
    assert!(matches!(ended.run.state, RunState::Interrupted { .. }), "{:?}", ended.run.state);
    let before = journal(&dir);
    let is_cut = |attempt: &Attempt| matches!(attempt.verdict, AttemptVerdict::CutShort(_));
    assert!(before.iter().filter(|attempt| !is_cut(attempt)).count() == 1, "{before:?}");

    // As after a crash in the middle of a line.
    let path = dir.0.join("run/journal.jsonl");
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    file.write_all(b"{\"number\":99,\"case").unwrap();
    drop(file);
    let changed = plan(&PLAN.replace("700ms", "800ms"), &server);
    let resume =
        |plan: &Plan| run(plan, &dir, &machine, &Stop::default(), true, &mut Progress::none());
    let refused = resume(&changed).unwrap_err();
    assert!(refused.to_string().contains("the plan has changed"), "{refused}");

    let ended = resume(&unchanged).unwrap();
    assert_eq!(ended.run.state, RunState::Complete);
    let after = journal(&dir);
    assert_eq!(after[..before.len()], before[..]);
    let mut numbers: Vec<u32> = after.iter().map(|attempt| attempt.number).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), after.len());
    for (case, repeat) in [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)] {
        let is_of = |attempt: &&Attempt| (attempt.case, attempt.repeat) == (case, repeat);
        assert!(after.iter().filter(is_of).any(|attempt| !is_cut(attempt)), "{after:?}");
    }
    let again = resume(&unchanged).unwrap();
    assert!(again.attempts.len() >= after.len());
}

#[test]
fn a_directory_that_holds_a_run_is_not_overwritten() {
    let (dir, server) = (TempDir::new(), Server::start());
    let (plan, machine) = (plan(ONE_HOLD, &server), calm(&dir));
    let start = || run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none());
    start().unwrap();
    let before = journal(&dir);
    let refused = start().unwrap_err();
    assert!(refused.to_string().contains("--resume"), "{refused}");
    assert_eq!(journal(&dir), before);
}

#[test]
fn an_idle_crowd_is_silent_and_keeps_its_connections() {
    let (dir, server) = (TempDir::new(), Server::start());
    let machine = calm(&dir);
    let text = ONE_HOLD.replace(
        "path = \"/\"",
        "path = \"/\"\nbeside = { method = \"GET\", path = \"/\", idle = true, connections = 40 }",
    );
    let plan = plan(&text, &server);
    let ended = run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    let first = ended.attempts.first().unwrap();
    let files = dir.0.join("run/attempts").join(format!("{:04}", first.number));
    let crowd: serde_json::Value = read(&files.join("beside.json"));
    let phase = &crowd["phases"][0];
    let counts = ["planned", "sent", "completed"].map(|name| phase[name].as_u64().unwrap());
    assert_eq!(counts, [40, 40, 40], "{phase}");
    assert_eq!(phase["errors"]["read"].as_u64(), Some(0), "{phase}");
    assert!(!files.join("beside.hlog").exists());
}
