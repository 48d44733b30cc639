//! Stages of a server are sped up, by slowing all others down. Whether predictions are right is the
//! matter of the tests of kvant-base and of the analysis, which need no time of a busy machine.

use crate::conduct::{TempDir, calm, plan, read, run_undisturbed};
use crate::server::Server;
use kvant_base::tag::Stage;
use kvant_lab::model::{GainFigure, Report};
use kvant_lab::record::{PhaseKind, SpedUp, WhatIfFacts};
use kvant_load::Rate;
use kvant_load::report::json::ResultFile;

const PLAN: &str = r#"
connections = 4
[subject.small]
SERVER
[workload.status]
method = "GET"
path = "/"
[phase]
highest = { closed = true, duration = "200ms", warmup = "20ms" }
held = { rate = 400, duration = "200ms", warmup = "20ms" }
"#;

fn experiment(dir: &TempDir, server: &Server, stages: &[Stage]) -> Report {
    let machine = calm(dir);
    let facts = WhatIfFacts { stages: stages.to_vec(), percents: vec![25, 50] };
    let plan = plan(PLAN, server).what_if(facts, 2).unwrap();
    run_undisturbed(&plan, dir, &machine)
}

#[test]
fn each_attempt_speeds_its_stage_up_by_each_part() {
    let dir = TempDir::new();
    let report = experiment(&dir, &Server::staged(), &[Stage::Parse, Stage::Respond]);
    let found = report.what_if.as_ref().expect("it asked");
    assert_eq!(found.failures, []);
    assert!(report.figures.is_empty() && report.maxima.is_empty(), "they are of a slower server");
    for attempt in &report.attempts {
        let files = dir.0.join(format!("run/attempts/{:04}", attempt.number));
        let phases: Vec<SpedUp> = read(&files.join("what-if.json"));
        let mut percents: Vec<u32> = phases.iter().map(|phase| phase.percent).collect();
        percents.sort_unstable();
        assert_eq!(percents, [0, 25, 50]);
        let load = ResultFile::read(&files.join("load.json")).unwrap();
        assert_eq!(load.phases.len(), 3);
        for (phase, result) in phases.iter().zip(&load.phases) {
            assert_eq!(result.label, phase.label());
            let factor = [1.0, 1.3333, 2.0][[0, 25, 50]
                .iter()
                .position(|percent| *percent == phase.percent)
                .expect("it is one of them")];
            assert_eq!(phase.factor, factor);
            match (report.case(attempt.case).kind, result.outcome.phase.rate) {
                (PhaseKind::Closed, rate) => assert_eq!(rate, Rate::Closed),
                (_, rate) => assert_eq!(rate, Rate::Constant(400.0 / factor)),
            }
        }
    }
    // All of it is in the report: closed loops have a rate, held rates have none.
    let of = |phase: &str, figure| {
        let is_it = |case: usize| report.case(case).planned_phase() == phase;
        found.gains.iter().filter(move |one| is_it(one.case) && one.figure == figure).count()
    };
    assert_eq!((of("highest", GainFigure::Rate), of("held", GainFigure::Rate)), (2, 0));
    for gains in &found.gains {
        let percents: Vec<u32> = gains.changes.iter().map(|change| change.percent).collect();
        assert_eq!(percents, [25, 50]);
        assert!(gains.changes.iter().all(|change| change.interval.is_none()), "two blocks");
    }
}

#[test]
fn a_server_that_cannot_be_slowed_down_is_not_measured() {
    let dir = TempDir::new();
    let report = experiment(&dir, &Server::stalling(), &[Stage::Parse]);
    let found = report.what_if.expect("it asked");
    let [(stage, count, problem)] = &found.failures[..] else { panic!("{:?}", found.failures) };
    assert_eq!(
        (stage.as_str(), problem.as_str()),
        ("parse", "status 404: it is no Kvant, or an older one")
    );
    // An attempt that the machine disturbed is repeated.
    assert!(*count >= 4, "two phases in two blocks: {count}");
    assert_eq!(found.gains, []);
}
