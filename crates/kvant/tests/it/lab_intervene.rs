//! `kvant lab explain --intervene` on a real server: what happens to it, and the report of it.
//!
//! A busy machine disturbs attempts, and causes need a dozen blocks; whether they are the right
//! ones is the matter of kvant-lab's own tests. So one block is run here.

use crate::kvant_command::TempDir;
use crate::lab::{json, kvant_in, processes_of};
use serde_json::Value;
use std::fs;

const PLAN: &str = r#"
connections = 2
[data]
keys = 500
[workload]
put = "put"
[phase]
max = { closed = true, duration = "300ms" }
held = { rate = 400, duration = "300ms", warmup = "50ms" }
"#;

#[test]
fn suspects_happen_beside_their_controls() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PLAN).expect("writable");
    let args = ["lab", "explain", "run", "--intervene", "--plan", "plan.toml", "--blocks", "1"];
    let more = ["--suspects", "pause,checkpoint,flush"];
    let done = kvant_in(dir.path(), &[&args[..], &more].concat());
    // Others may have disturbed all of it.
    let is_disturbed = done.stderr.contains("no attempt counts");
    assert!(done.code == Some(0) || (done.code == Some(1) && is_disturbed), "{done:?}");
    assert_eq!(processes_of(dir.path()), []);
    let run_dir = dir.path().join("run");
    let trials = json(&run_dir.join("attempts/0001/trials.json"));
    let trials = trials.as_array().expect("a list");
    let treated: Vec<&Value> = trials.iter().filter(|one| one["is_treated"] == true).collect();
    assert_eq!((trials.len(), treated.len()), (6, 3), "{trials:?}");
    assert!(trials.iter().all(|one| one["problem"].is_null()), "{trials:?}");
    let events = json(&run_dir.join("attempts/0001/events.json"));
    for kind in ["pause", "flush"] {
        let trial = treated.iter().find(|one| one["suspect"] == kind).expect("it was treated");
        let events = events.as_array().expect("a list");
        let is_made = |event: &&Value| {
            event["kind"] == kind && event["start_ns"].as_u64() >= trial["at_ns"].as_u64()
        };
        assert!(events.iter().any(|event| is_made(&event)), "{kind}: {events:?}");
    }
    let page = fs::read_to_string(run_dir.join("report.html")).expect("there is one");
    assert!(page.contains("id=\"interventions\""), "no section of interventions");

    // The same once more: nothing is left to do.
    let count = fs::read_dir(run_dir.join("attempts")).expect("readable").count();
    if !is_disturbed {
        let again = kvant_in(dir.path(), &[&args[..], &more].concat());
        assert_eq!(again.code, Some(0), "{again:?}");
        assert_eq!(fs::read_dir(run_dir.join("attempts")).expect("readable").count(), count);
    }
    let explained = kvant_in(dir.path(), &["lab", "explain", "run", "--attempt", "1"]);
    assert_eq!(explained.code, Some(0), "{explained:?}");
}

#[test]
fn what_cannot_be_made_to_happen_is_refused_before_anything_runs() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PLAN).expect("writable");
    let args = ["lab", "explain", "run", "--intervene", "--plan", "plan.toml", "--suspects"];
    let done = kvant_in(dir.path(), &[&args[..], &["neighbour"]].concat());
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("server-cpus"), "{done:?}");
    let done = kvant_in(dir.path(), &[&args[..], &["weather"]].concat());
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(!dir.path().join("run").exists());
}
