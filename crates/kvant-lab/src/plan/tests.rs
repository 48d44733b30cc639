mod known;
mod problems;
mod schema;
mod shipped;

use super::*;
use crate::record::{Case, PhaseKind};
use std::path::Path;

fn plan(text: &str) -> Plan {
    Plan::parse(text, Path::new("plans/trial.toml")).unwrap_or_else(|problems| panic!("{problems}"))
}

fn names(cases: &[Case]) -> Vec<String> {
    let name = |case: &Case| {
        let cell = case.cell.join("|");
        format!("{} {} {} [{cell}]", case.subject, case.workload, case.phase)
    };
    cases.iter().map(name).collect()
}

#[test]
fn an_empty_plan_finds_the_maximum_of_get_and_holds_80_percent_of_it() {
    let plan = plan("");
    assert_eq!((plan.name.as_str(), plan.title.as_str()), ("trial", "trial"));
    assert_eq!(plan.dir, Path::new("plans"));
    assert_eq!(names(&plan.cases()), ["kvant get max []", "kvant get at-80 []"]);
    let data = plan.data.as_ref().unwrap();
    assert_eq!(data.workload.key_count, 1_000_000);
    let share = PlannedRate::Share { part: 0.8, of: MaximumOf::Own };
    assert_eq!(plan.phases[1].task, PhaseTask::Hold(share));
    assert_eq!(plan.objectives[0].text(), "p99<5ms");
}

#[test]
fn a_search_for_workers_and_queue_capacity_is_three_lines() {
    let plan = plan("[sweep]\nworkers = [2, 4, 10]\nqueue-capacity = [10, 100]\n");
    let cases = plan.cases();
    let searches: Vec<String> = cases
        .iter()
        .filter(|case| case.kind == PhaseKind::FindMax)
        .map(|case| case.cell.join(" "))
        .collect();
    assert_eq!(searches, ["2 10", "2 100", "4 10", "4 100", "10 10", "10 100"]);
    let of_last = plan.resolve(cases.last().unwrap()).unwrap();
    let options = [("workers", "10"), ("queue-capacity", "100")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    assert_eq!(of_last.subject.kind, SubjectKind::Kvant { program: None, options });
}

const SWEPT: &str = r#"
[subject.kvant]
serve = { workers = 1, dispatch = "pool" }
[subject.java]
command = "java -jar {dir}/java.jar {port}"
workloads = ["put", "get"]
warmup-min = "8s"
[subject.floor]
command = "floor {port}"
fixed-response = true
workloads = ["get"]
[workload]
put = "put"
get = "get"
status = "status"
[phase]
max = "find-max"
held = { rate = "10k", warmup = "1s" }
[[sweep]]
workers = [4, 8]
workloads = ["put"]
phases = ["max"]
[[sweep]]
value-bytes = [10, 1000]
connections = [1, 64]
subjects = ["java", "kvant", "floor"]
workloads = ["get"]
phases = ["held"]
"#;

#[test]
fn an_axis_makes_cases_only_where_it_changes_something() {
    let cases = names(&plan(SWEPT).cases());
    let of =
        |what: &str| cases.iter().filter(|case| case.contains(what)).cloned().collect::<Vec<_>>();
    assert_eq!(of("kvant put max"), ["kvant put max [4||]", "kvant put max [8||]"]);
    assert_eq!(of("java put"), ["java put max [||]", "java put held [||]"]);
    assert_eq!(of("kvant put held"), ["kvant put held [||]"]);
    assert_eq!(
        of("java get held"),
        [
            "java get held [|10|1]",
            "java get held [|10|64]",
            "java get held [|1000|1]",
            "java get held [|1000|64]"
        ],
    );
    // It stores no values.
    assert_eq!(of("floor get held"), ["floor get held [||1]", "floor get held [||64]"]);
    assert_eq!(of("status"), ["kvant status max [||]", "kvant status held [||]"]);
}

#[test]
fn numbers_of_connections_are_in_cells_without_their_unit() {
    let plan = plan("[phase]\nmax = \"closed\"\n[sweep]\nconnections = [512, \"1k\"]\n");
    assert_eq!(names(&plan.cases()), ["kvant get max [512]", "kvant get max [1000]"]);
}

#[test]
fn a_case_is_resolved_with_the_values_of_its_cell() {
    let plan = plan(SWEPT);
    let cases = plan.cases();
    let resolved = |name: &str| {
        let at = names(&cases).iter().position(|case| case == name).unwrap();
        plan.resolve(&cases[at]).unwrap()
    };
    let get = resolved("java get held [|1000|1]");
    assert_eq!(get.workload.connection_count, 1);
    assert_eq!(get.data.unwrap().workload.value_bytes.max(), 1_000);
    assert_eq!(get.phase.warmup, Duration::from_secs(8));
    let put = resolved("kvant put max [8||]");
    let SubjectKind::Kvant { options, .. } = put.subject.kind else { panic!() };
    let options: Vec<String> =
        options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(options, ["dispatch=pool", "workers=8"]);
    assert_eq!(put.workload.connection_count, 64);
    assert!(resolved("floor get held [||1]").data.is_none());
    let stranger = Case { subject: "other".to_owned(), ..cases[0].clone() };
    let error = plan.resolve(&stranger).unwrap_err();
    assert!(error.message().contains("no subject `other`"), "{error:?}");
}

#[test]
fn the_axis_rate_replaces_fixed_rates_only() {
    let plan = plan(
        "[phase]\nmax = \"closed\"\nheld = \"1k\"\nshare = \"50%\"\n[sweep]\nrate = [\"2k\", 4000]",
    );
    let cases = plan.cases();
    let rates: Vec<(String, Option<f64>)> =
        cases.iter().map(|case| (case.phase.clone(), case.rate_per_s)).collect();
    let expected =
        [("max", None), ("held", Some(2_000.0)), ("share", None), ("held", Some(4_000.0))];
    assert_eq!(rates, expected.map(|(phase, rate)| (phase.to_owned(), rate)));
    let resolved = plan.resolve(&cases[3]).unwrap();
    assert_eq!(resolved.phase.task, PhaseTask::Hold(PlannedRate::Fixed(4_000.0)));
}

#[test]
fn a_share_names_the_cases_of_its_maximum() {
    let plan = plan(
        r#"
        [subject]
        a = {}
        b = { url = "http://127.0.0.1:8080" }
        [workload]
        status = "status"
        get = "get"
        [phase]
        max = "find-max"
        own = "80%"
        status = { rate = "20k at most 70% of status", workloads = ["get"] }
        b = "100% of subject b"
        least = "90% of least"
        [sweep]
        workers = [1, 2]
        "#,
    );
    let cases = plan.cases();
    let maxima = |phase: &str, subject: &str, cell: &str| -> Vec<String> {
        let case = cases.iter().find(|case| {
            (
                case.phase.as_str(),
                case.subject.as_str(),
                case.workload.as_str(),
                case.cell[0].as_str(),
            ) == (phase, subject, "get", cell)
        });
        let case = case.unwrap();
        let resolved = plan.resolve(case).unwrap();
        let of = resolved.phase.task.maxima()[0].clone();
        let found = plan.maximum_cases(case, &of, &cases);
        names(&found.iter().map(|id| cases[*id].clone()).collect::<Vec<_>>())
    };
    assert_eq!(maxima("own", "a", "2"), ["a get max [2]"]);
    assert_eq!(maxima("status", "a", "2"), ["a status max [2]"]);
    assert_eq!(maxima("b", "a", "2"), ["b get max []"]);
    assert_eq!(maxima("least", "a", "1"), ["a get max [1]", "b get max []"]);
}

#[test]
fn an_external_generator_takes_the_place_of_a_workload_on_one_subject() {
    let plan = plan(
        r#"
        [subject.kvant]
        [subject.redis]
        command = ["redis-server", "--port", "{port}"]
        ready = ""
        fill = "fill-redis {port} {keys}"
        requests.get = { command = "redis-benchmark {port}", count-after = "GET: ", count-is = "per-second" }
        [workload]
        get = "get"
        [phase]
        max = "find-max"
        closed = "closed"
        "#,
    );
    let cases = plan.cases();
    assert_eq!(names(&cases), ["kvant get max []", "kvant get closed []", "redis get closed []"]);
    assert_eq!(cases[2].kind, PhaseKind::Command);
    let resolved = plan.resolve(&cases[2]).unwrap();
    let Requests::Command { command, is_rate, .. } = resolved.workload.requests else { panic!() };
    assert_eq!((command, is_rate), (vec!["redis-benchmark".to_owned(), "{port}".to_owned()], true));
}

#[test]
fn a_workload_inherits_keys_and_values_and_may_start_empty() {
    let plan = plan(
        r#"
        connections = 1
        [data]
        keys = "10k"
        value-bytes = "1..100"
        deleted = 0.25
        ttl = "1h"
        [workload.put-first]
        empty = true
        [workload.get-half]
        hit-ratio = 0.5
        connections = 8
        beside = { kind = "put", rate = "1k", connections = 2 }
        [workload.crowd]
        kind = "get"
        beside = { kind = "get", idle = true, connections = 9900, slow-heads = 990 }
        [workload.get-beside-half]
        kind = "get"
        beside = { kind = "get", rate = "50% of get-half" }
        [phase]
        max = { closed = true, workloads = ["get-half"] }
        held = "1k"
        "#,
    );
    let data = plan.data.as_ref().unwrap();
    assert_eq!((data.deleted_part, data.ttl_s), (0.25, Some(3_600)));
    let [put, get, crowd, half] = &plan.workloads[..] else { panic!() };
    let Requests::Native(config) = &put.requests else { panic!() };
    assert_eq!((config.key_count, config.value_bytes.max()), (10_000, 100));
    assert!(plan.resolve(&plan.cases()[0]).unwrap().data.is_none());
    assert!(put.changes_data && put.starts_empty);
    assert!(get.ok_statuses.contains(404));
    // The load beside it puts.
    assert!(get.changes_data);
    assert!(!crowd.changes_data);
    let besides = [get, crowd, half].map(|workload| {
        let beside = workload.beside.as_deref().unwrap();
        (beside.rate.clone(), beside.workload.connection_count, beside.slow_head_count)
    });
    let share = PlannedRate::Share { part: 0.5, of: MaximumOf::Workload("get-half".to_owned()) };
    let fixed = PlannedRate::Fixed(1_000.0);
    assert_eq!(besides, [(Some(fixed), 2, 0), (None, 9_900, 990), (Some(share), 1, 0)]);
}

#[test]
fn known_figures_are_a_row_each() {
    let plan = plan(
        r#"
        [[known]]
        workload = "get"
        phase = "max"
        what = "GET"
        figures = { "p99.9" = 5.44, rate_max = 17_000, mean = 0.8 }
        source = "seed 000"
        "#,
    );
    let rows: Vec<(&str, f64)> =
        plan.known.iter().map(|row| (row.figure.as_str(), row.value)).collect();
    assert_eq!(rows, [("p99.9", 5.44), ("rate_max", 17_000.0), ("mean", 0.8)]);
    assert!(plan.known.iter().all(|row| row.phase == "max" && row.source == "seed 000"));
}

#[test]
fn the_short_form_of_any_plan_fits_and_says_what_it_did() {
    let text = format!("repeats = 5\n{SWEPT}");
    let plan = plan(&text);
    let quick = plan.quick(Plan::QUICK);
    assert!(plan.expected_duration() > Duration::from_secs(600), "{:?}", plan.expected_duration());
    assert!(
        quick.expected_duration() < Duration::from_secs(100),
        "{:?}",
        quick.expected_duration()
    );
    assert_eq!(quick.repeats, 1);
    assert!(quick.shortened.len() >= 3, "{:?}", quick.shortened);
    assert_eq!(quick.shortened[0], "Each case is run once instead of 5 times.");
    assert_eq!(names(&quick.cases()), names(&plan.quick(Plan::QUICK).cases()));
    for case in quick.cases() {
        quick.resolve(&case).unwrap();
    }
    let gigantic = super::tests::plan(
        "[sweep]\nworkers = [1,2,3,4,5,6,7,8]\nselectors = [1,2,3,4,5,6,7,8]\nqueue-capacity = [1,2,3,4,5,6,7,8]",
    );
    assert!(gigantic.quick(Plan::QUICK).expected_duration() < Duration::from_secs(100));
    // A plan that is short already is as it was.
    let short = super::tests::plan(
        "repeats = 1\ndata = false\n[workload]\nstatus = \"status\"\n[phase]\nheld = { rate = \"1k\", duration = \"2s\", warmup = \"0s\" }",
    );
    assert_eq!(short.quick(Plan::QUICK).shortened, Vec::<String>::new());
}

#[test]
fn the_short_form_bounds_the_bytes_of_the_data() {
    let plan = plan("data = { keys = \"1M\" }\n[sweep]\nvalue-bytes = [10, \"64KiB\"]");
    let keys = plan.quick(Plan::QUICK).data.unwrap().workload.key_count;
    assert!((900..=1_024).contains(&keys), "{keys}");
}

#[test]
fn a_subject_that_is_profiled_is_recorded_in_all_its_phases() {
    let plan = plan(
        r#"
        [subject.off]
        serve = { sync = "os" }
        [subject.recorded]
        serve = { sync = "os" }
        profile = true
        [workload]
        get = { connections = 1, spin = "always" }
        [phase]
        held = "1k"
        "#,
    );
    let resolved: Vec<Resolved> =
        plan.cases().iter().map(|case| plan.resolve(case).unwrap()).collect();
    let recorded: Vec<bool> = resolved.iter().map(|case| case.phase.is_profiled).collect();
    assert_eq!(recorded, [false, true]);
    assert_eq!(resolved[0].workload.spin, kvant_load::config::SPIN_ALWAYS);
}

#[test]
fn a_share_of_a_load_beside_needs_a_maximum_before_it() {
    let text = r#"
        [workload]
        get = {}
        get-beside = { kind = "get", beside = { kind = "put", rate = "200% of get" } }
        [phase]
        held = { rate = 100, workloads = ["get-beside"] }
        max = { closed = true, workloads = ["get"] }
    "#;
    let plan = Plan::parse(text, Path::new("t.toml"));
    assert!(plan.is_ok(), "{plan:?}");
    let text = text.replace("max = { closed = true", "max = { rate = 100");
    let problem = Plan::parse(&text, Path::new("t.toml")).unwrap_err().to_string();
    assert!(problem.contains("a share of a maximum that no phase before it finds"), "{problem}");
}
