use super::*;
use std::path::Path;

const PLAN: &str = r#"
    [subject]
    a = {}
    b = { url = "http://127.0.0.1:8080" }
    [workload]
    put = "put"
    get = "get"
    [phase]
    max = "find-max"
    own = "80%"
    [sweep]
    workers = [1, 2]
"#;

fn plan() -> Plan {
    Plan::parse(PLAN, Path::new("trial.toml")).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The index of a case.
fn at(cases: &[Case], subject: &str, phase: &str, cell: &str) -> usize {
    let is_it = |case: &Case| {
        case.subject == subject
            && case.workload == "get"
            && case.phase == phase
            && case.cell[0] == cell
    };
    cases.iter().position(is_it).unwrap()
}

#[test]
fn a_share_is_of_the_same_repeat_else_of_the_median() {
    let (plan, cases) = (plan(), plan().cases());
    let (search, case) = (at(&cases, "a", "max", "2"), at(&cases, "a", "own", "2"));
    let mut maxima = Maxima::default();
    for (repeat, per_s) in [(1, 1_000.0), (2, 3_000.0), (3, 2_000.0)] {
        maxima.add(search, repeat, per_s, false);
    }
    let share = PlannedRate::Share { part: 0.8, of: MaximumOf::Own };
    let of_case = |repeat| OfCase { plan: &plan, cases: &cases, case: &cases[case], repeat };
    assert_eq!(maxima.rate(&share, &of_case(2)), Ok(2_400.0));
    assert_eq!(maxima.rate(&share, &of_case(4)), Ok(1_600.0));
    let bounded = |per_s| PlannedRate::AtMost { per_s, part: 0.8, of: MaximumOf::Own };
    assert_eq!(maxima.rate(&bounded(2_000.0), &of_case(2)), Ok(2_000.0));
    assert_eq!(maxima.rate(&bounded(9_000.0), &of_case(2)), Ok(2_400.0));
}

#[test]
fn the_least_maximum_needs_all_subjects() {
    let (plan, cases) = (plan(), plan().cases());
    let case = at(&cases, "a", "own", "1");
    let of_case = OfCase { plan: &plan, cases: &cases, case: &cases[case], repeat: 1 };
    let mut maxima = Maxima::default();
    maxima.add(at(&cases, "a", "max", "1"), 1, 1_000.0, false);
    let missing = maxima.maximum(&MaximumOf::Least, &of_case).unwrap_err();
    assert_eq!(missing, "there is no maximum of b with get");
    maxima.add(at(&cases, "b", "max", ""), 1, 600.0, true);
    assert_eq!(maxima.maximum(&MaximumOf::Least, &of_case), Ok(600.0));
    assert_eq!(maxima.maximum(&MaximumOf::Own, &of_case), Ok(1_000.0));
    // A disturbed maximum gives way to the first that is not.
    maxima.add(at(&cases, "b", "max", ""), 2, 800.0, false);
    assert_eq!(maxima.maximum(&MaximumOf::Least, &of_case), Ok(800.0));
}

#[test]
fn repeats_without_a_rate_count_in_the_median() {
    let (plan, cases) = (plan(), plan().cases());
    let (search, case) = (at(&cases, "a", "max", "2"), at(&cases, "a", "own", "2"));
    let of_case = |repeat| OfCase { plan: &plan, cases: &cases, case: &cases[case], repeat };
    let mut maxima = Maxima::default();
    let mut after = |repeat, per_s| {
        maxima.add(search, repeat, per_s, false);
        maxima.maximum(&MaximumOf::Own, &of_case(repeat)).ok()
    };
    assert_eq!(after(1, 0.0), None);
    assert_eq!(after(2, 1_000.0), Some(1_000.0));
    assert_eq!(after(3, 0.0), None, "two of three found none");
    assert_eq!(after(4, 3_000.0), Some(3_000.0));
    assert_eq!(after(5, 2_000.0), Some(2_000.0));
    assert_eq!(after(6, 4_000.0), Some(4_000.0));
    assert_eq!(after(7, 0.0), Some(1_000.0));
}
