//! Problems with their places.

use crate::plan::Plan;
use std::path::Path;

fn problems(text: &str) -> Vec<String> {
    let problems = Plan::parse(text, Path::new("t.toml")).expect_err("the plan has problems");
    problems.to_string().lines().map(str::to_owned).collect()
}

/// Fifteen mistakes and more.
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
[workload.put]
threads = 65
[workload.fetch]
[workload.scan]
script = "a.lua"
keys = 10
[phase]
held = { rate = "10k", closed = true }
steps = { steps = [], duration = "1m" }
half = { duration = "1s" }
[sweep]
connections = [1, "many"]
workers = [2, 2]
[[known]]
workload = "get"
what = "GET"
figures = { p98 = 1.0, p90 = -1 }
"#;

#[test]
fn all_problems_are_reported_with_line_and_column() {
    let expected = [
        "t.toml:2:11: `repeats`: 0 repeats are not within 1 and 1000",
        "t.toml:3:1: a plan has no key `objectivs`: did you mean `objectives`?",
        "t.toml:4:15: `server-cpus`: `0,2-1` is no list of CPUs: write numbers, such as 0,2-3",
        "t.toml:5:10: subject `kvant` is started in two ways: write only one of serve, command and \
         url",
        "t.toml:10:14: there is no workload `gett`: did you mean `get`?",
        "t.toml:11:9: `ready`: `health` is no path: write / and what follows, such as /v0/status",
        "t.toml:13:8: `keys`: `1 Mio` is not a count: write a whole number with k, M, G, T or P, \
         such as 64, 10k, 1M",
        "t.toml:15:8: `kind`: `gets` is no workload: write put, get, delete, range, status or mixed",
        "t.toml:17:11: 65 threads for 64 connections: each needs one",
        "t.toml:18:11: `fetch` requests nothing: write kind, mix, script, path or command",
        "t.toml:21:1: `keys` has no effect on workload `scan`",
        "t.toml:23:1: phase `held` has both `rate` and `closed`: leave one of them out",
        "t.toml:24:19: `steps` has 0 values: write 1 to 1000",
        "t.toml:25:1: phase `half` does nothing: write rate, find-max, steps, ramp, factors or \
         closed",
        "t.toml:27:19: `connections`: `many` is not a count: write a whole number with k, M, G, T \
         or P, such as 64, 10k, 1M",
        "t.toml:28:15: `workers` has the value 2 twice",
        "t.toml:29:1: `known` has no `source`",
        "t.toml:32:13: there is no figure `p98`: did you mean `p90`?",
        "t.toml:32:30: `p90`: `-1` is no number of requests per second or milliseconds",
    ];
    assert_eq!(problems(WRONG), expected);
}

#[test]
fn text_that_is_no_toml_is_said_so_at_its_place() {
    let found = problems("repeats = 3\n[subject.kvant\ntitle = \"x\"\n");
    assert!(found[0].starts_with("t.toml:2:15: this is no TOML: "), "{found:?}");
}

#[test]
fn columns_count_characters() {
    assert_eq!(
        problems("data = { keys = 1000, ttl = \"\u{447}\u{430}\u{441}\", key-bytes = 3 }")[1],
        "t.toml:1:29: `ttl`: `\u{447}\u{430}\u{441}` is not a time: write a whole number with us, ms, s, m or h (s if \
         there is none), such as 30, 1m, 250ms",
    );
}

/// The sentences on a plan whose parts are valid each.
fn problem_of(text: &str) -> String {
    let found = problems(text);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn a_ramp_needs_arrivals_that_can_follow_it() {
    let plan = "[workload]\nget = { arrival = \"wrk2\" }\n[phase]\ngrow = { ramp = \"0..50k\" }\n";
    assert_eq!(
        problem_of(plan),
        "t.toml:4:17: phase `grow` is a ramp, and the arrivals of `get` are those of wrk2, which \
         hold one rate: write uniform or poisson",
    );
}

#[test]
fn a_share_needs_a_maximum_before_it() {
    let missing = "phase `at-80` has a share of a maximum that no phase before it finds for `get`: \
                   write a phase with find-max or closed first";
    let found = problem_of("[phase]\nat-80 = \"80%\"\nmax = \"find-max\"\n");
    assert_eq!(found, format!("t.toml:2:9: {missing}"));
    let found = problem_of(
        "[workload]\nget = \"get\"\nput = \"put\"\n[phase]\nmax = { find-max = true, workloads = \
         \"put\" }\nat-80 = { rate = \"80%\" }\n",
    );
    assert_eq!(found, format!("t.toml:6:18: {missing}"));
    let found = problem_of(
        "[workload]\nget = \"get\"\nput = \"put\"\n[phase]\nmax = \"closed\"\nat = { rate = \"80% of \
         put\", workloads = [\"get\"] }\n",
    );
    assert_eq!(
        found,
        "t.toml:6:15: phase `at` has a share of the maximum of `put`, which stands after `get`: \
         write [workload.put] before it",
    );
    let found = problem_of("[phase]\nmax = \"closed\"\nat = \"80% of subject java\"\n");
    assert_eq!(
        found,
        "t.toml:3:6: phase `at` has a share of the maximum of subject `java`, and there is no such \
         subject",
    );
    let found = problem_of("[phase]\nall = { factors = [0.5, 2] }\n");
    assert!(found.starts_with("t.toml:2:19: phase `all` has a share of a maximum"), "{found}");
}

#[test]
fn equal_factors_are_refused() {
    let found = problem_of("[phase]\nmax = \"closed\"\nall = { factors = [0.5, 2, 2.0] }\n");
    assert_eq!(found, "t.toml:3:19: `factors` has the factor 2 twice");
}

#[test]
fn a_sweep_changes_something_and_is_bounded() {
    let found = problem_of("[subject]\njava = { command = \"java\" }\n[sweep]\nworkers = [1, 2]\n");
    assert_eq!(
        found,
        "t.toml:4:1: sweeping `workers` changes nothing: it is an option of Kvant, and no subject \
         is one",
    );
    let found = problem_of("[sweep]\nconnections = [1000, \"1k\"]\n");
    assert_eq!(found, "t.toml:2:22: `connections` has the value 1000 twice");
    let found = problem_of("[sweep]\nrate = [\"1k\", \"2k\"]\n");
    assert_eq!(
        found,
        "t.toml:2:1: sweeping `rate` changes nothing: no phase of those holds a fixed rate",
    );
    let hundred: Vec<String> = (1..=100).map(|value| value.to_string()).collect();
    let hundred = hundred.join(",");
    let found =
        problem_of(&format!("[sweep]\nworkers = [{hundred}]\nqueue-capacity = [{hundred}]\n"));
    assert!(
        found.starts_with("t.toml:2:1: the plan has 20000 cases, and 5000 is the most: "),
        "{found}"
    );
    let found = problem_of(&format!(
        "[sweep]\na = [{hundred}]\nb = [{hundred}]\nc = [{hundred}]\nd = [{hundred}]\n"
    ));
    assert!(found.starts_with("t.toml:2:1: the plan has up to 200000000 cases"), "{found}");
}

#[test]
fn a_part_that_is_never_run_is_a_problem() {
    let found = problem_of(
        "[subject]\na = { workloads = \"get\" }\n[workload]\nget = \"get\"\nput = \"put\"\n",
    );
    assert_eq!(
        found,
        "t.toml:5:1: workload `put` is never run: no subject serves it, or no phase is for it",
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem_without_a_place() {
    let problems = Plan::read(Path::new("/nonexistent/plan.toml")).unwrap_err();
    assert!(problems.to_string().starts_with("/nonexistent/plan.toml: cannot be read: "));
}
