//! Suspects are made to happen to a server of known behaviour: it stalls at flushes, and at nothing
//! else.

use crate::conduct::{TempDir, calm, plan, read, run_undisturbed};
use crate::server::{STALL, Server};
use kvant_lab::explain::intervention::{Effect, Finding};
use kvant_lab::model::Report;
use kvant_lab::record::{InterventionFacts, Suspect, Trial};
use std::collections::BTreeMap;

const PLAN: &str = r#"
connections = 4
[subject.small]
SERVER
[workload.status]
method = "GET"
path = "/v0/status"
[phase]
held = { rate = 400, duration = "1s", warmup = "50ms" }
"#;

fn experiment(dir: &TempDir, suspects: Vec<Suspect>, block_count: u32) -> Report {
    let (server, machine) = (Server::stalling(), calm(dir));
    let facts = InterventionFacts {
        suspects,
        window_ns: 300_000_000,
        gap_min_ns: 20_000_000,
        gap_max_ns: 60_000_000,
    };
    let plan = plan(PLAN, &server).intervene(facts, block_count).unwrap();
    run_undisturbed(&plan, dir, &machine)
}

#[test]
fn the_suspect_at_which_a_server_stalls_is_the_cause() {
    let dir = TempDir::new();
    let report = experiment(&dir, vec![Suspect::Flush, Suspect::Compaction], 12);
    let found = report.interventions.expect("it made suspects happen");
    assert_eq!(found.failures, []);
    let of = |suspect| -> &Effect {
        let is_wanted = |one: &&Effect| one.suspect == suspect && one.percent == 90.0;
        found.effects.iter().find(is_wanted).expect("it was measured")
    };
    let (cause, decoy) = (of(Suspect::Flush), of(Suspect::Compaction));
    assert_eq!(cause.finding(), Finding::Cause, "{cause:?}");
    // Most requests of a window are due before a stall of half of it ends.
    let change_ns = cause.change_ns.expect("it was measured");
    assert!(change_ns > STALL.as_nanos() as f64 / 4.0, "{cause:?}");
    assert!(decoy.change_ns.expect("it was measured") < change_ns / 2.0, "{decoy:?}");
    assert!(report.verdict[0].en.starts_with("flush, "), "{:?}", report.verdict);

    // All of it is in the files, as drawn: each suspect once, with its control beside it.
    let trials: Vec<Trial> = read(&dir.0.join("run/attempts/0001/trials.json"));
    let mut count: BTreeMap<(Suspect, bool), u32> = BTreeMap::new();
    for trial in &trials {
        *count.entry((trial.suspect, trial.is_treated)).or_default() += 1;
    }
    assert_eq!(count.into_values().collect::<Vec<_>>(), [1; 4], "{trials:?}");
    for pair in trials.windows(2) {
        assert!(pair[1].at_ns >= pair[0].at_ns + found.facts.window_ns, "{pair:?}");
    }
}

#[test]
fn what_the_server_refuses_did_not_happen() {
    let dir = TempDir::new();
    let report = experiment(&dir, vec![Suspect::Pause], 1);
    let found = report.interventions.expect("it made suspects happen");
    let problem = "status 404: it is no Kvant, or an older one".to_owned();
    assert_eq!(found.failures.len(), 1);
    assert_eq!((&found.failures[0].0, &found.failures[0].2), (&"pause".to_owned(), &problem));
    assert!(found.effects.iter().all(|effect| effect.finding() == Finding::Unknown));
}
