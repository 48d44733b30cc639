use super::*;
use std::path::Path;

const PLAN: &str = r#"
server-cpus = "0"
generator-cpus = "1"
[workload]
status = {}
[phase]
max = { closed = true, duration = "1s" }
held = { rate = 500, duration = "1s", profile = true }
"#;

fn plan(text: &str) -> Plan {
    Plan::parse(text, Path::new("t.toml")).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn a_plan_becomes_blocks_of_a_held_rate() {
    let plan = plan(PLAN);
    assert_eq!(plan.suspects(), Suspect::ALL);
    let facts = InterventionFacts::new(vec![Suspect::Flush, Suspect::Pause]);
    let made = plan.intervene(facts.clone(), 9).unwrap();
    assert_eq!((made.repeats, made.cases().len()), (9, 1));
    let phase = &made.phases[0];
    assert_eq!((phase.name.as_str(), phase.is_profiled), ("held", false));
    assert_eq!(phase.duration, Duration::from_nanos(facts.block_ns_max()));
    assert!(made.text.ends_with("# suspects: flush, pause\n# blocks: 9\n"), "{}", made.text);
}

#[test]
fn a_store_that_suspects_change_is_restored_for_each_attempt() {
    let is_restored = |suspects: &[Suspect]| {
        let facts = InterventionFacts::new(suspects.to_vec());
        plan(PLAN).intervene(facts, 9).unwrap().workloads[0].changes_data
    };
    assert!(!is_restored(&[Suspect::Pause, Suspect::Profiler, Suspect::Neighbour]));
    for suspect in [Suspect::Flush, Suspect::Compaction, Suspect::Checkpoint] {
        assert!(is_restored(&[Suspect::Pause, suspect]), "{suspect:?}");
    }
}

#[test]
fn what_cannot_be_told_apart_from_the_lab_is_refused() {
    let facts = |suspect| InterventionFacts::new(vec![suspect]);
    let share = plan(&PLAN.replace("rate = 500", "rate = \"60%\""));
    let problem = share.intervene(facts(Suspect::Flush), 9).unwrap_err();
    assert!(problem.contains("phase `held` holds a share"), "{problem}");
    let closed = plan(&PLAN.replace("held = { rate = 500,", "held = { closed = true,"));
    let problem = closed.intervene(facts(Suspect::Flush), 9).unwrap_err();
    assert!(problem.contains("holds no rate"), "{problem}");
    let shared = plan(&PLAN.replace("generator-cpus = \"1\"", "generator-cpus = \"0,1\""));
    assert!(!shared.suspects().contains(&Suspect::Neighbour));
    let problem = shared.intervene(facts(Suspect::Neighbour), 9).unwrap_err();
    assert!(problem.contains("slow down the generator"), "{problem}");
    let running = plan(&format!("{PLAN}[subject.s]\nurl = \"http://127.0.0.1:1/\"\n"));
    assert!(!running.suspects().contains(&Suspect::Checkpoint));
    let problem = running.intervene(facts(Suspect::Checkpoint), 9).unwrap_err();
    assert!(problem.contains("checkpoints would stay"), "{problem}");
}
