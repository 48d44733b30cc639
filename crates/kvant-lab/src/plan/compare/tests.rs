use super::*;
use std::path::PathBuf;

const PLAN: &str = r#"
repeats = 3
[subject.base]
serve = { workers = 2, sync = "os" }
[subject.other]
command = ["sh", "{port}"]
fixed-response = true
[workload]
get = {}
[phase]
max = { closed = true }
held = "80%"
"#;

fn compare(text: &str, a: &str, b: &str) -> std::result::Result<Plan, String> {
    let plan = Plan::parse(text, Path::new("plan.toml")).unwrap();
    let facts = ComparisonFacts { a: a.to_owned(), b: b.to_owned(), assertions: Vec::new() };
    plan.compare(facts, 5)
}

fn options(plan: &Plan) -> Vec<String> {
    let options = |subject: &Subject| match &subject.kind {
        SubjectKind::Kvant { options, .. } => {
            options.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>()
        }
        other => panic!("{other:?}"),
    };
    plan.subjects.iter().map(options).collect()
}

#[test]
fn options_are_added_to_those_of_the_plan() {
    let plan = compare(PLAN, "this", "workers=4,selectors=2").unwrap();
    assert_eq!(options(&plan), ["workers=2 sync=os ", "sync=os workers=4 selectors=2 "]);
    assert_eq!(plan.repeats, 10);
    let cases: Vec<_> = plan.cases().into_iter().map(|case| case.subject + &case.phase).collect();
    assert_eq!(cases, ["Amax", "Bmax", "Aheld", "Bheld"]);
}

#[test]
fn both_sides_are_held_at_one_rate() {
    let plan = compare(PLAN, "this", "workers=4").unwrap();
    let least = PlannedRate::Share { part: 0.8, of: MaximumOf::Least };
    assert_eq!(plan.phases[1].task, PhaseTask::Hold(least));
    let refused = |phase: &str| {
        let text = PLAN.replace("held = \"80%\"", phase);
        compare(&text, "this", "this").unwrap_err()
    };
    assert!(refused("held = \"80% of subject base\"").contains("share of another maximum"));
    assert!(refused("held = { factors = [2] }").contains("by its own maximum"));
}

#[test]
fn a_side_is_a_program_a_url_or_a_subject() {
    let program = std::env::current_exe().unwrap();
    let plan = compare(PLAN, program.to_str().unwrap(), "other").unwrap();
    let SubjectKind::Kvant { program: found, options } = &plan.subjects[0].kind else {
        panic!("{:?}", plan.subjects)
    };
    assert_eq!((found, options.len()), (&Some(program), 2));
    assert!(matches!(plan.subjects[1].kind, SubjectKind::Command { .. }));
    let plan = compare(PLAN, "this", "http://127.0.0.1:1/").unwrap();
    assert_eq!(plan.subjects[1].kind, SubjectKind::Url("http://127.0.0.1:1/".to_owned()));
    assert!(compare(PLAN, "this", "./absent").unwrap_err().contains("no program ./absent"));
    assert!(compare(PLAN, "this", "basis").unwrap_err().contains("which has base, other"));
    assert!(compare(PLAN, "this", "this,workers").unwrap_err().contains("OPTION=VALUE"));
    assert!(compare(PLAN, "this", "other,workers=2").unwrap_err().contains("option of Kvant"));
}

#[test]
fn equal_stores_are_shared() {
    let shares = |a: &str, b: &str| compare(PLAN, a, b).unwrap().shares_stores();
    assert!(shares("this", "workers=4"));
    assert!(!shares("this", "memory=64MiB"));
    assert!(!shares("this", "other"));
    let keyspace = |name| format!("engine=cassandra,cluster-keyspace={name}");
    assert!(shares(&keyspace("one"), &keyspace("one")));
    assert!(!shares(&keyspace("one"), &keyspace("two")));
    let program = std::env::current_exe().unwrap();
    assert!(!shares("this", program.to_str().unwrap()));
    assert!(!Plan::parse(PLAN, &PathBuf::from("plan.toml")).unwrap().shares_stores());
}

#[test]
fn other_sides_make_another_text() {
    let text = |b| compare(PLAN, "this", b).unwrap().text;
    assert_ne!(text("workers=4"), text("workers=5"));
}
