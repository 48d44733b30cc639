//! The plans of `lab/plans`.

use super::names;
use crate::plan::{Plan, Requests, SubjectKind, shipped};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

pub(super) fn plans() -> Vec<Plan> {
    let parse = |name: &str, text: &str| {
        let path = Path::new("lab/plans").join(name).with_extension("toml");
        Plan::parse(text, &path).unwrap_or_else(|problems| panic!("{problems}"))
    };
    shipped().iter().map(|plan| parse(plan.name, plan.text)).collect()
}

#[test]
fn all_files_of_lab_plans_are_shipped() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/plans");
    let files: BTreeSet<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let names: BTreeSet<String> =
        shipped().iter().map(|plan| format!("{}.toml", plan.name)).collect();
    assert_eq!(names, files);
}

#[test]
fn each_shipped_plan_resolves_all_its_cases() {
    for plan in plans() {
        let cases = plan.cases();
        assert!(!cases.is_empty(), "{}", plan.name);
        let distinct: BTreeSet<String> = names(&cases).into_iter().collect();
        assert_eq!(distinct.len(), cases.len(), "{}", plan.name);
        for (index, case) in cases.iter().enumerate() {
            assert_eq!(case.id, index, "{}", plan.name);
            let resolved = plan.resolve(case).unwrap();
            for of in resolved.phase.task.maxima() {
                assert!(
                    !plan.maximum_cases(case, of, &cases).is_empty(),
                    "{}: {case:?}",
                    plan.name
                );
            }
        }
        // Scripts would have to be found without a copy of the source, from which this plan builds
        // all of its servers.
        let is_native = |requests: &Requests| !matches!(requests, Requests::Script { .. });
        assert!(
            plan.name == "bench-load"
                || plan.workloads.iter().all(|workload| is_native(&workload.requests))
        );
    }
}

#[test]
fn the_short_form_of_each_shipped_plan_takes_less_than_100_seconds_with_all_workloads() {
    for plan in plans() {
        let quick = plan.quick(Plan::QUICK);
        let expected = quick.expected_duration();
        println!("{}: {:?}, {expected:?}", plan.name, plan.expected_duration());
        println!("    {}", quick.shortened.join("\n    "));
        assert!(expected < Duration::from_secs(100), "{}: {expected:?}", plan.name);
        assert_eq!(
            quick.workloads.len(),
            plan.workloads.len(),
            "{}: {:?}",
            plan.name,
            quick.shortened
        );
        assert_eq!(quick.subjects.len(), plan.subjects.len(), "{}", plan.name);
    }
}

#[test]
fn titles_are_those_of_the_files() {
    for (shipped, plan) in shipped().iter().zip(plans()) {
        assert_eq!((shipped.name, shipped.title), (plan.name.as_str(), plan.title.as_str()));
    }
}

#[test]
fn a_plan_is_opened_by_its_name_without_a_copy_of_the_source() {
    // Tests run in the directory of the crate, where there is no lab/plans.
    let plan = Plan::open("seed-002").unwrap();
    assert_eq!((plan.name.as_str(), plan.dir.as_path()), ("seed-002", Path::new("")));
    let problem = Plan::open("sed-002").unwrap_err().to_string();
    assert_eq!(problem, "sed-002: there is no such plan: did you mean `seed-002`?");
}

#[test]
fn seed_002_compares_inline_with_pool() {
    let plan = plans().into_iter().find(|plan| plan.name == "seed-002").unwrap();
    let dispatches: Vec<(String, String)> = plan
        .subjects
        .iter()
        .map(|subject| match &subject.kind {
            SubjectKind::Kvant { options, .. } => (subject.name.clone(), options[0].1.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [("blocking", "inline"), ("asynchronous", "pool")];
    assert_eq!(dispatches, expected.map(|(name, mode)| (name.to_owned(), mode.to_owned())));
}

/// The examples of `docs/lab.md`, with the parts that they leave out.
#[test]
fn the_examples_of_the_documentation_are_plans() {
    let page = include_str!("../../../../../docs/lab.md");
    let mut count = 0;
    for example in page.split("```toml\n").skip(1) {
        let example = example.split("```").next().unwrap();
        let rest = match example {
            _ if example.starts_with("[subject.redis]") => "[phase]\nmax = \"closed\"\n",
            _ if example.starts_with("[phase]") => {
                "[workload]\nstatus = \"status\"\nget = {}\nget-absent = {}\n"
            }
            _ if example.starts_with("[[sweep]]") => {
                "[workload]\nget = {}\nput = {}\n[phase]\nmax = \"closed\"\nbeyond = \"10%\"\n"
            }
            _ => "",
        };
        let text = format!("{example}\n{rest}");
        let path = Path::new("docs/lab.md");
        let plan = Plan::parse(&text, path).unwrap_or_else(|problems| panic!("{text}\n{problems}"));
        assert!(!plan.cases().is_empty());
        count += 1;
    }
    assert_eq!(count, 9);
}
