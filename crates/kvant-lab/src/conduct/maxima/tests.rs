use super::*;

fn case(id: usize, subject: &str, workload: &str, kind: PhaseKind) -> Case {
    Case {
        id,
        subject: subject.to_owned(),
        workload: workload.to_owned(),
        kind,
        cell: vec!["2".to_owned()],
        ..Case::default()
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(0, "a", "get", PhaseKind::FindMax),
        case(1, "b", "get", PhaseKind::FindMax),
        case(2, "a", "put", PhaseKind::Closed),
        case(3, "a", "get", PhaseKind::Hold),
        Case { cell: vec!["4".to_owned()], ..case(4, "a", "get", PhaseKind::Hold) },
        Case { cell: vec![String::new()], ..case(5, "b", "get", PhaseKind::Hold) },
    ]
}

fn share(part: f64, of: MaximumOf) -> PlannedRate {
    PlannedRate::Share { part, of }
}

#[test]
fn a_share_is_of_the_same_repeat_else_of_the_median() {
    let cases = cases();
    let mut maxima = Maxima::default();
    for (repeat, per_s) in [(1, 1_000.0), (2, 3_000.0), (3, 2_000.0)] {
        maxima.add(0, repeat, per_s);
    }
    let rate = |repeat| maxima.rate(&share(0.8, MaximumOf::Own), &cases, &cases[3], repeat);
    assert_eq!(rate(2), Ok(2_400.0));
    assert_eq!(rate(4), Ok(1_600.0));
}

#[test]
fn a_share_may_be_of_another_workload_or_subject_or_of_all() {
    let cases = cases();
    let mut maxima = Maxima::default();
    maxima.add(0, 1, 1_000.0);
    let rate = |of: MaximumOf, maxima: &Maxima| maxima.rate(&share(0.5, of), &cases, &cases[3], 1);
    let missing = rate(MaximumOf::Least, &maxima).unwrap_err();
    assert_eq!(missing, "there is no maximum of b with get");
    maxima.add(1, 1, 600.0);
    maxima.add(2, 1, 50.0);
    assert_eq!(rate(MaximumOf::Least, &maxima), Ok(300.0));
    assert_eq!(rate(MaximumOf::Subject("b".to_owned()), &maxima), Ok(300.0));
    assert_eq!(rate(MaximumOf::Workload("put".to_owned()), &maxima), Ok(25.0));
    let bounded = |per_s| PlannedRate::AtMost { per_s, part: 0.5, of: MaximumOf::Own };
    assert_eq!(maxima.rate(&bounded(400.0), &cases, &cases[3], 1), Ok(400.0));
    assert_eq!(maxima.rate(&bounded(900.0), &cases, &cases[3], 1), Ok(500.0));
}

#[test]
fn a_maximum_belongs_to_its_cell() {
    let cases = cases();
    let mut maxima = Maxima::default();
    maxima.add(0, 1, 1_000.0);
    maxima.add(1, 1, 600.0);
    let own = |case: usize| maxima.rate(&share(1.0, MaximumOf::Own), &cases, &cases[case], 1);
    assert!(own(4).is_err(), "another cell");
    assert_eq!(own(5), Ok(600.0), "the axis does not concern the case");
}
