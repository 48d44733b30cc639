//! `kvant lab what-if` on a real server. Whether predictions are right is the matter of other
//! tests, which a busy machine does not disturb: one block is run here.

use crate::kvant_command::TempDir;
use crate::lab::{json, kvant_in, processes_of};
use serde_json::Value;
use std::fs;

const PLAN: &str = r#"
connections = 2
[data]
keys = 500
[workload]
mixed = { mix = "get=70,put=30" }
[phase]
highest = { closed = true, duration = "300ms", warmup = "50ms" }
"#;

#[test]
fn a_server_is_slowed_down_but_for_a_stage() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PLAN).expect("writable");
    let args = ["lab", "what-if", "run", "--plan", "plan.toml", "--blocks", "1"];
    let more = ["--stages", "parse,wal", "--spare", "50"];
    let done = kvant_in(dir.path(), &[&args[..], &more].concat());
    // Others may have disturbed all of it.
    let is_disturbed = done.stderr.contains("no attempt counts");
    assert!(done.code == Some(0) || (done.code == Some(1) && is_disturbed), "{done:?}");
    assert_eq!(processes_of(dir.path()), []);
    let run_dir = dir.path().join("run");
    let attempts = run_dir.join("attempts");
    let phases = json(&attempts.join("0001/what-if.json"));
    let phases = phases.as_array().expect("a list");
    assert_eq!(phases.len(), 2, "{phases:?}");
    assert!(phases.iter().all(|phase| phase["problem"].is_null()), "{phases:?}");
    let events = json(&attempts.join("0001/events.json"));
    let events = events.as_array().expect("a list").iter();
    let slow: Vec<&Value> = events
        .filter(|event| event["kind"] == "what_if")
        .map(|event| &event["fields"]["slow"])
        .collect();
    assert_eq!(slow.len(), 2, "{slow:?}");
    let slowed = slow.iter().filter_map(|slow| slow.as_str()).find(|slow| slow.contains("table"));
    let slowed: Value = serde_json::from_str(slowed.expect("one of them")).expect("JSON");
    // All but the stage of the case.
    assert_eq!((slowed.as_object().expect("an object").len(), &slowed["parse"]), (9, &Value::Null));
    assert_eq!(slowed["none"], 100.0);
    let page = fs::read_to_string(run_dir.join("report.html")).expect("there is one");
    assert!(page.contains("id=\"what-if\""), "no section");
    if !is_disturbed {
        assert!(done.stdout.contains("mixed highest"), "{done:?}");
    }
}

#[test]
fn a_stage_that_is_none_is_refused_before_anything_runs() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PLAN).expect("writable");
    let args = ["lab", "what-if", "run", "--plan", "plan.toml"];
    for wrong in [["--stages", "weather"], ["--spare", "100"], ["--spare", "0"]] {
        let done = kvant_in(dir.path(), &[&args[..], &wrong].concat());
        assert_eq!(done.code, Some(2), "{done:?}");
    }
    let share = PLAN.replace("closed = true", "rate = \"80%\"");
    let share = share.replace("[phase]\n", "[phase]\nmax = { closed = true }\n");
    fs::write(dir.path().join("plan.toml"), share).expect("writable");
    let done = kvant_in(dir.path(), &args);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("write a rate"), "{done:?}");
    assert!(!dir.path().join("run").exists());
}
