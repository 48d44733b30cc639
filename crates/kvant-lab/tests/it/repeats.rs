//! What differs between repeats, and what comes before a search.

use crate::conduct::{self, TempDir, calm, plan};
use crate::server::Server;
use kvant_lab::conduct::{Ended, Progress, Stop};
use kvant_load::report::json::ResultFile;
use std::time::Duration;

/// Runs a plan with these repeats, keys of the subject and phase.
fn run(dir: &TempDir, repeats: u32, subject: &str, phase: &str) -> Ended {
    let server = Server::start();
    let text = format!(
        "repeats = {repeats}\nseed = 7\nobjectives = [\"p99<10s\"]\nconnections = 1\n\
         [subject.small]\nSERVER\n{subject}\n\
         [workload.status]\nmethod = \"GET\"\npath = \"/\"\n[phase]\none = {{ {phase} }}\n"
    );
    let (plan, machine) = (plan(&text, &server), calm(dir));
    conduct::run(&plan, dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap()
}

/// The result of an attempt.
fn result(dir: &TempDir, number: u32) -> ResultFile {
    let file = dir.0.join(format!("run/attempts/{number:04}/load.json"));
    ResultFile::read(&file).unwrap()
}

#[test]
fn each_repeat_has_a_seed_of_its_own() {
    let dir = TempDir::new();
    let ended = run(&dir, 2, "", "rate = 50, duration = \"100ms\", warmup = \"10ms\"");
    for attempt in &ended.attempts {
        assert_eq!(attempt.seed, 6 + u64::from(attempt.repeat), "{attempt:?}");
        assert_eq!(result(&dir, attempt.number).config.seed, attempt.seed, "{attempt:?}");
    }
    assert!(ended.attempts.iter().any(|attempt| attempt.repeat == 2));
}

#[test]
fn a_search_warms_up_a_server_that_compiles_itself() {
    let dir = TempDir::new();
    let phase = "find-max = true, duration = \"100ms\", warmup = \"10ms\"";
    run(&dir, 1, "warmup-min = \"300ms\"", phase);
    let warmups: Vec<Duration> =
        result(&dir, 1).phases.iter().map(|phase| phase.outcome.phase.warmup).collect();
    assert_eq!(warmups[0], Duration::from_millis(300));
    let steps = &warmups[1..];
    assert!(steps.iter().all(|warmup| *warmup == Duration::from_millis(10)), "{warmups:?}");
}
