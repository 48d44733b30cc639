use super::*;
use crate::record::PhaseKind;
use std::path::Path;

const PLAN: &str = r#"
[workload]
get = {}
put = {}
[phase]
max = "find-max"
highest = { closed = true, duration = "1s", profile = true }
held = { rate = 500, duration = "1s", workloads = ["get"] }
[[sweep]]
connections = [1, 4]
phases = ["held"]
"#;

fn plan(text: &str) -> Plan {
    Plan::parse(text, Path::new("t.toml")).unwrap_or_else(|problems| panic!("{problems}"))
}

fn facts() -> WhatIfFacts {
    WhatIfFacts { stages: vec![Stage::Parse, Stage::Table], percents: vec![25, 50] }
}

#[test]
fn each_phase_has_a_case_for_each_stage() {
    let made = plan(PLAN).what_if(facts(), 9).unwrap();
    assert_eq!(made.repeats, 9);
    assert!(made.phases.iter().all(|phase| !phase.is_profiled));
    let end = "# what if: parse, table\n# spared per cent: 25, 50\n# blocks: 9\n";
    assert!(made.text.ends_with(end), "{}", made.text);
    let cases = made.cases();
    // Closed loops of two workloads, a rate of one with two numbers of connections.
    assert_eq!(cases.len(), 2 * (2 + 2), "{cases:?}");
    for case in &cases {
        let planned = if case.kind == PhaseKind::Closed { "highest" } else { "held" };
        assert_eq!(case.planned_phase(), planned);
        let stage = case.sped_up.expect("each has one");
        assert_eq!(case.phase, format!("{planned} {}", stage.name()));
        assert_eq!(made.resolve(case).unwrap().phase.sped_up, Some(stage));
    }
}

#[test]
fn requests_pass_the_stages_of_their_kind() {
    use Stage::{Build, Dispatch, Memtable, Merge, Parse, Respond, Sync, Table, Wal};
    let of = |workload: &str| plan(&format!("[workload]\n{workload} = {{}}\n")).stages();
    assert_eq!(of("get"), [Parse, Dispatch, Memtable, Table, Respond]);
    assert_eq!(of("range"), [Parse, Dispatch, Memtable, Table, Merge, Respond]);
    let all = [Parse, Dispatch, Memtable, Table, Wal, Sync, Merge, Build, Respond];
    assert_eq!(of("put"), all);
}

#[test]
fn what_cannot_be_slowed_down_is_refused() {
    let share = plan(&PLAN.replace("rate = 500", "rate = \"60%\""));
    let problem = share.what_if(facts(), 9).unwrap_err();
    assert!(problem.contains("phase `held` holds a share"), "{problem}");
    let search = "[workload]\nget = {}\n[phase]\nmax = \"find-max\"\n";
    let problem = plan(search).what_if(facts(), 9).unwrap_err();
    assert!(problem.contains("no phase with a rate"), "{problem}");
    let program = "[workload.get]\ncommand = \"echo responses 1\"\ncount-after = \"responses \"\n\
                   [phase]\nhighest = \"closed\"\n";
    let problem = plan(program).what_if(facts(), 9).unwrap_err();
    assert!(problem.contains("`get` is a program"), "{problem}");
    let beside = |of_beside: &str| {
        let put = format!("put = {{ beside = {{ kind = \"get\"{of_beside} }} }}");
        plan(&PLAN.replace("put = {}", &put)).what_if(facts(), 9)
    };
    for rate in ["1000", "\"50% of get\"", "\"1k at most 50% of get\""] {
        let problem = beside(&format!(", rate = {rate}")).unwrap_err();
        assert!(problem.contains("beside `put` has a rate"), "{rate}: {problem}");
    }
    assert!(beside("").is_ok() && beside(", idle = true").is_ok());
}
