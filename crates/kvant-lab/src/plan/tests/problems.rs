//! Problems with their places.

use crate::plan::Plan;
use std::path::Path;

fn problems(text: &str) -> Vec<String> {
    let problems = Plan::parse(text, Path::new("trial.toml")).expect_err("the plan has problems");
    problems.to_string().lines().map(str::to_owned).collect()
}

/// Fifteen mistakes.
const WRONG: &str = r#"title = "Trial"
repeats = 0
objectivs = ["p99<5ms"]
server-cpus = "0,2-1"
[subject.kvant]
serve = { workers = 4 }
command = "kvant"
[subject.java]
command = "java {port}"
workloads = ["gett"]
ready = "health"
[data]
keys = "1 Mio"
[workload.get]
kind = "gets"
threads = 65
[workload.fetch]
[workload.scan]
script = "a.lua"
keys = 10
[phase]
at-80 = "80%"
max = "find-max"
held = { rate = "10k", closed = true }
steps = { steps = [], duration = "1m" }
half = { duration = "1s" }
[sweep]
connections = [1, "many"]
workers = [2, 2]
[[known]]
workload = "get"
what = "GET"
figures = { p98 = 1.0, p99 = -1 }
"#;

#[test]
fn all_problems_are_reported_with_line_and_column() {
    let expected = ["trial.toml:2:11: `repeats`: 0 repeats are not within 1 and 1000"];
    assert_eq!(problems(WRONG), expected);
}
