//! `kvant lab compare` on real servers: files, order and exit codes.
//!
//! A busy machine disturbs attempts, and eight whole blocks take their time. So one block is
//! measured, and the reports of eight are those of its copies.

use crate::kvant_command::TempDir;
use crate::lab::{json, kvant_in, processes_of};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const PLAN: &str = r#"
connections = 2
[data]
keys = 500
[workload]
get = "get"
[phase]
held = { rate = 400, duration = "300ms", warmup = "50ms" }
"#;

const BLOCKS: u64 = 8;

fn journal(run_dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run_dir.join("journal.jsonl")).expect("there is one");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Makes eight blocks of one, with these assertions. All of their attempts count.
fn multiply(run_dir: &Path, attempts: &[Value], assertions: &[&str]) {
    let mut lines = String::new();
    let mut number = 1_000;
    for block in 0..BLOCKS {
        for attempt in attempts {
            number += 1;
            let from =
                run_dir.join(format!("attempts/{:04}", attempt["number"].as_u64().expect("one")));
            let to = run_dir.join(format!("attempts/{number:04}"));
            fs::create_dir_all(&to).expect("writable");
            for file in fs::read_dir(from).expect("readable") {
                let file = file.expect("readable");
                fs::copy(file.path(), to.join(file.file_name())).expect("writable");
            }
            let mut copy = attempt.clone();
            copy["number"] = json!(number);
            copy["repeat"] = json!(2 * block + attempt["repeat"].as_u64().expect("one"));
            copy["verdict"] = json!({ "verdict": "valid" });
            lines += &format!("{copy}\n");
        }
    }
    fs::write(run_dir.join("journal.jsonl"), lines).expect("writable");
    let mut facts = json(&run_dir.join("run.json"));
    facts["repeats"] = json!(2 * BLOCKS);
    facts["comparison"]["assertions"] = json!(assertions);
    fs::write(run_dir.join("run.json"), facts.to_string()).expect("writable");
}

#[test]
fn two_settings_are_compared_in_blocks() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PLAN).expect("writable");
    let sides = ["lab", "compare", "this", "workers=3", "--plan", "plan.toml"];
    let more = ["--blocks", "1", "--assert", "rate >= 0.5x", "-o", "run"];
    let done = kvant_in(dir.path(), &[&sides[..], &more].concat());
    // Nothing is claimed of one block. Others may have disturbed all of it.
    let is_disturbed = done.stderr.contains("no attempt counts");
    assert!(done.code == Some(4) || (done.code == Some(1) && is_disturbed), "{done:?}");
    assert_eq!(processes_of(dir.path()), []);
    let run_dir = dir.path().join("run");
    let facts = json(&run_dir.join("run.json"));
    assert_eq!(facts["comparison"]["b"], "workers=3");
    assert!(facts["subjects"].to_string().contains("workers"), "{}", facts["subjects"]);

    // Each side twice, in an order that is its own mirror image.
    let all = journal(&run_dir);
    let mut last: Vec<Value> = Vec::new();
    for attempt in all {
        last.retain(|one| (&one["case"], &one["repeat"]) != (&attempt["case"], &attempt["repeat"]));
        last.push(attempt);
    }
    let order: Vec<u64> = last.iter().map(|one| one["case"].as_u64().expect("one")).collect();
    assert!(order == [0, 1, 1, 0] || order == [1, 0, 0, 1], "{order:?}");

    for (assertions, code) in [
        (&["rate >= 0.001x", "get/held: rate <= 1000x"][..], 0),
        (&["rate >= 0.001x", "rate >= 1000x"][..], 3),
        (&["rate >= 0.001x", "put: rate >= 0.001x"][..], 4),
    ] {
        multiply(&run_dir, &last, assertions);
        let done = kvant_in(dir.path(), &["lab", "report", "run"]);
        assert_eq!(done.code, Some(code), "{assertions:?} {done:?}");
    }
    let compared = json(&run_dir.join("comparison.json"));
    assert_eq!(compared["blocks"], BLOCKS);
    let figures = compared["figures"].as_array().expect("a list");
    let rate = figures.iter().find(|one| one["figure"] == "rate").expect("it is measured");
    assert_eq!((&rate["case"], &rate["blocks"]), (&json!("get held"), &json!(BLOCKS)));
    assert_eq!(compared["assertions"][0]["decision"], "holds");
    assert_eq!(compared["assertions"][1]["decision"], "undecided");
    let first = fs::read(run_dir.join("comparison.json")).expect("readable");
    kvant_in(dir.path(), &["lab", "report", "run"]);
    assert_eq!(fs::read(run_dir.join("comparison.json")).expect("readable"), first);
    let page = fs::read_to_string(run_dir.join("report.html")).expect("there is one");
    assert!(page.contains("id=\"sides\""), "no section of the sides");
}

#[test]
fn wrong_sides_and_assertions_are_refused_together() {
    let dir = TempDir::new();
    fs::write(dir.path().join("plan.toml"), PLAN).expect("writable");
    let args =
        ["lab", "compare", "this", "./absent", "--plan", "plan.toml", "--assert", "p42 < 2x"];
    let done = kvant_in(dir.path(), &args);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("no program ./absent"), "{done:?}");
    assert!(done.stderr.contains("write one of p50"), "{done:?}");
}
