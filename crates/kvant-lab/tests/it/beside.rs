//! A load beside begins and ends with the load of its case; a load that fails, fails its attempt.

use crate::conduct::{TempDir, calm, journal, plan, read, run};
use crate::server::Server;
use kvant_lab::conduct::{Progress, Stop};
use kvant_lab::record::{Attempt, AttemptVerdict, RunState};
use std::fs;
use std::time::{Duration, Instant};

/// Ends long before the 20 s of its phases.
const EARLY: Duration = Duration::from_secs(10);

const PLAN: &str = r#"
repeats = 1
connections = 1
[subject.small]
SERVER
[workload.status]
script = "SCRIPT"
beside = { method = "GET", path = "/", rate = 50, connections = 1 }
[phase]
held = { rate = 50, duration = "TIME", warmup = "50ms" }
"#;

/// A plan with a script; `time` is the length of its phase.
fn plan_with(dir: &TempDir, server: &Server, script: &str, time: &str) -> kvant_lab::plan::Plan {
    let file = dir.0.join("load.lua");
    fs::write(&file, script).unwrap();
    plan(&PLAN.replace("SCRIPT", file.to_str().unwrap()).replace("TIME", time), server)
}

fn first(dir: &TempDir) -> (Attempt, std::path::PathBuf) {
    let first = journal(dir).into_iter().next().unwrap();
    let files = dir.0.join("run/attempts").join(format!("{:04}", first.number));
    (first, files)
}

#[test]
fn a_load_beside_begins_with_that_of_its_case() {
    let (dir, server) = (TempDir::new(), Server::start());
    // It takes two seconds until the load of the case can begin.
    let slow = "local until_us = wrk.time_us() + 2e6\nwhile wrk.time_us() < until_us do end\n";
    let (plan, machine) = (plan_with(&dir, &server, slow, "600ms"), calm(&dir));
    run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    let (_, files) = first(&dir);
    let start_ms = |file: &str| {
        let result: serde_json::Value = read(&files.join(file));
        result["phases"][0]["start_wall_ms"].as_u64().unwrap()
    };
    let apart_ms = start_ms("load.json").abs_diff(start_ms("beside.json"));
    // The threads of a busy machine wake up late.
    assert!(apart_ms < 1000, "{apart_ms} ms");
}

#[test]
fn a_request_to_stop_ends_the_load_beside() {
    let (dir, server) = (TempDir::new(), Server::start());
    let (plan, machine) = (plan_with(&dir, &server, "", "20s"), calm(&dir));
    let stop = Stop::default();
    let (start, stopper) = (Instant::now(), stop.clone());
    let log = dir.0.join("run/attempts/0001/load.hlog");
    let stopping = std::thread::spawn(move || {
        while fs::metadata(&log).map_or(0, |log| log.len()) == 0 && start.elapsed() < EARLY {
            std::thread::sleep(Duration::from_millis(5));
        }
        stopper.request();
    });
    let ended = run(&plan, &dir, &machine, &stop, false, &mut Progress::none()).unwrap();
    stopping.join().unwrap();
    assert!(matches!(ended.run.state, RunState::Interrupted { .. }), "{:?}", ended.run.state);
    assert!(start.elapsed() < EARLY, "{:?}", start.elapsed());
}

#[test]
fn a_script_that_fails_fails_its_attempts_and_ends_the_load_beside() {
    let (dir, server) = (TempDir::new(), Server::start());
    let failing = "local count = 0\nfunction request()\n  count = count + 1\n  \
                   if count > 5 then error('as planned') end\n  return wrk.format()\nend\n";
    let (plan, machine) = (plan_with(&dir, &server, failing, "20s"), calm(&dir));
    let start = Instant::now();
    let ended = run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    assert_eq!(ended.run.state, RunState::Complete);
    assert_eq!(ended.attempts.len(), 3, "{:?}", ended.attempts);
    for attempt in &ended.attempts {
        assert!(
            matches!(&attempt.verdict, AttemptVerdict::Failed(why) if why.contains("as planned")),
            "{attempt:?}"
        );
    }
    assert!(start.elapsed() < EARLY, "{:?}", start.elapsed());
}

#[test]
fn a_load_beside_that_fails_fails_its_attempts() {
    let (dir, server) = (TempDir::new(), Server::start());
    let plan = plan_with(&dir, &server, "", "300ms");
    let script = dir.0.join("broken.lua");
    fs::write(&script, "function request() error('as planned') end").unwrap();
    let beside = format!("beside = {{ script = {script:?}, rate = 50, connections = 1 }}");
    let text = plan.text.replace(
        "beside = { method = \"GET\", path = \"/\", rate = 50, connections = 1 }",
        &beside,
    );
    let (plan, machine) = (crate::conduct::plan(&text, &server), calm(&dir));
    let ended = run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    let (first, _) = first(&dir);
    assert_eq!((ended.run.state, ended.attempts.len()), (RunState::Complete, 3));
    assert!(
        matches!(&first.verdict, AttemptVerdict::Failed(why)
            if why.contains("the load beside failed") && why.contains("as planned")),
        "{first:?}"
    );
}
