//! A run directory has one run at a time, which continues only under the same conditions.

use crate::conduct::{TempDir, calm, journal, plan, read, run, run_of};
use crate::server::Server;
use kvant_lab::analyse::analyse;
use kvant_lab::conduct::{Progress, Stop};
use kvant_lab::plan::Plan;
use kvant_lab::record::{Attempt, AttemptVerdict, Run, RunState};
use std::fs;
use std::time::{Duration, Instant};

const PLAN: &str = r#"
repeats = 1
connections = 1
[subject.small]
SERVER
[workload.status]
script = "SCRIPT"
[phase]
held = { rate = 50, duration = "TIME", warmup = "50ms" }
"#;

const WAIT_MAX: Duration = Duration::from_secs(60);

fn plan_in(dir: &TempDir, server: &Server, time: &str) -> Plan {
    let script = dir.0.join("get.lua");
    fs::write(&script, "").unwrap();
    plan(&PLAN.replace("SCRIPT", script.to_str().unwrap()).replace("TIME", time), server)
}

#[test]
fn a_run_is_continued_with_the_same_program_scripts_and_machine_only() {
    let (dir, server) = (TempDir::new(), Server::start());
    let (plan, machine) = (plan_in(&dir, &server, "300ms"), calm(&dir));
    let program = dir.0.join("kvant");
    fs::write(&program, "").unwrap();
    let run = |resumes| {
        let stop = Stop::default();
        run_of(&program, &plan, &dir, &machine, &stop, resumes, &mut Progress::none())
    };
    run(false).unwrap();
    let before = journal(&dir);
    let refused = |what: &str| {
        let refused = run(true).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
        assert_eq!(journal(&dir), before);
    };

    let modified = fs::metadata(&program).unwrap().modified().unwrap();
    fs::write(&program, "another").unwrap();
    refused("program: it was ");
    fs::write(&program, "").unwrap();
    fs::File::options().append(true).open(&program).unwrap().set_modified(modified).unwrap();

    let written = dir.0.join("run/run.json");
    let mut earlier: Run = read(&written);
    let cpu = earlier.identity.insert("CPU".to_owned(), "1024 x abacus".to_owned()).unwrap();
    let save = |run: &Run| fs::write(&written, serde_json::to_vec(run).unwrap()).unwrap();
    save(&earlier);
    refused("CPU: it was 1024 x abacus, it is ");
    earlier.identity.insert("CPU".to_owned(), cpu);
    save(&earlier);
    run(true).unwrap();
    fs::write(dir.0.join("get.lua"), "-- another").unwrap();
    let refused = run(true).unwrap_err().to_string();
    assert!(refused.contains("get.lua: it was "), "{refused}");
}

#[test]
fn a_directory_in_use_is_refused() {
    let (dir, server) = (TempDir::new(), Server::start());
    let (plan, machine) = (plan_in(&dir, &server, "20s"), calm(&dir));
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let first = scope
            .spawn(|| run(&plan, &dir, &machine, &stop, false, &mut Progress::none()).unwrap());
        let start = Instant::now();
        while !dir.0.join("run/attempts/0001/load.hlog").exists() {
            assert!(start.elapsed() < WAIT_MAX);
            std::thread::sleep(Duration::from_millis(5));
        }
        for resumes in [true, false] {
            let again = Stop::default();
            let refused = run(&plan, &dir, &machine, &again, resumes, &mut Progress::none());
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("another run uses the directory"), "{refused}");
        }
        stop.request();
        let ended = first.join().unwrap();
        assert!(matches!(ended.run.state, RunState::Interrupted { .. }), "{:?}", ended.run.state);
    });
}

#[test]
fn a_run_that_cannot_begin_is_not_left_as_running() {
    let (dir, server) = (TempDir::new(), Server::start());
    let plan = plan_in(&dir, &server, "300ms");
    let machine = calm(&dir);
    // No machine has this CPU.
    let text = format!("generator-cpus = \"1023\"\n{}", plan.text);
    let plan = crate::conduct::plan(&text, &server);
    let refused = run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none());
    let refused = refused.unwrap_err().to_string();
    let written: Run = read(&dir.0.join("run/run.json"));
    let RunState::Interrupted { reason } = &written.state else { panic!("{:?}", written.state) };
    assert!(
        refused.contains("the planned CPUs") && reason.contains("the planned CPUs"),
        "{reason}"
    );
    assert!(!dir.0.join("run/cleanup.json").exists());
    assert!(!dir.0.join("run/scratch").exists());
}

#[test]
fn a_damaged_attempt_is_left_out_with_the_name_of_its_file() {
    let (dir, server) = (TempDir::new(), Server::start());
    let plan = plan_in(&dir, &server, "300ms");
    let text = plan.text.replace("repeats = 1", "repeats = 2");
    let (plan, machine) = (crate::conduct::plan(&text, &server), calm(&dir));
    run(&plan, &dir, &machine, &Stop::default(), false, &mut Progress::none()).unwrap();
    // Two attempts that count, whatever the machine did.
    let mut attempts = journal(&dir);
    let second = attempts.iter().position(|attempt| attempt.repeat == 2).unwrap();
    attempts.swap(1, second);
    attempts.truncate(2);
    let line = |attempt: &mut Attempt| {
        attempt.verdict = AttemptVerdict::Valid;
        serde_json::to_string(attempt).unwrap() + "\n"
    };
    let lines: String = attempts.iter_mut().map(line).collect();
    fs::write(dir.0.join("run/journal.jsonl"), lines).unwrap();
    let file = |attempt: usize, name: &str| {
        dir.0.join(format!("run/attempts/{:04}/{name}", attempts[attempt].number))
    };
    assert_eq!(analyse(&dir.0.join("run")).unwrap().figures[0].attempts.len(), 2);

    for (attempt, name, left) in [(0, "load.json", 1), (1, "load.hlog", 1)] {
        fs::write(file(attempt, name), "Tag=cut").unwrap();
        let report = analyse(&dir.0.join("run")).unwrap();
        assert_eq!(report.figures[0].attempts.len(), left);
        let path = file(attempt, name).display().to_string();
        let is_named = report.warnings.iter().any(|warning| warning.en.contains(&path));
        assert!(is_named, "{:?}", report.warnings);
    }
    assert!(analyse(&dir.0.join("run")).unwrap().time_lines.is_empty());
}
