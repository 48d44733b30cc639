use super::{EXIT_BROKEN, EXIT_NOT_VALID, Judge, Judged};
use crate::commands::load::facts::Done;
use kvant_load::assertion::Assertion;
use kvant_load::verdict::{Bound, Share, Verdict};
use kvant_load::{Histogram, Interval, OpRecord, Outcome, Phase, Rate};

/// A phase of one second: 100 responses after 2 ms, and one failure.
fn done(is_valid: bool) -> Done {
    let mut response = Histogram::new();
    response.record_many_ns(2_000_000, 100);
    let op = OpRecord {
        name: "GET".to_owned(),
        service: response.clone(),
        response,
        statuses: vec![(200, 99), (500, 1)],
        ..OpRecord::default()
    };
    let mut total = Interval {
        end_ns: 1_000_000_000,
        ops: vec![op],
        planned: 100,
        sent: 100,
        completed: 100,
        ..Interval::default()
    };
    total.errors.status = 1;
    let outcome = Outcome {
        phase: Phase { rate: Rate::Constant(100.0), ..Phase::default() },
        measured_ns: 1_000_000_000,
        total,
        ..Outcome::default()
    };
    let verdict = Verdict {
        bound: if is_valid { Bound::Neither } else { Bound::Generator },
        is_valid,
        late_percents: Vec::new(),
        shares: Vec::new(),
        disturbance: None,
        headline: String::new(),
        sentences: Vec::new(),
    };
    Done { label: String::new(), outcome, verdict }
}

fn judge(asserts: &[&str], phases: &[Done]) -> Judged {
    let asserts: Vec<Assertion> =
        asserts.iter().map(|text| Assertion::parse(text).expect("an assertion")).collect();
    let judge = Judge::new(&asserts, None).expect("no file is read");
    judge.judge(phases, 0)
}

#[test]
fn no_assertion_no_text() {
    let judged = judge(&[], &[done(true), done(false)]);
    assert_eq!((judged.exit_code, judged.text.as_str()), (0, ""));
}

#[test]
fn broken_assertions_of_a_valid_run_are_the_servers() {
    for (assert, exit_code) in
        [("p99<5ms", 0), ("p99<1ms", EXIT_BROKEN), ("errors==0", EXIT_BROKEN), ("rate>=99%", 0)]
    {
        assert_eq!(judge(&[assert], &[done(true)]).exit_code, exit_code, "{assert}");
    }
}

#[test]
fn broken_assertions_of_an_invalid_run_may_be_the_generators() {
    for (asserts, exit_code) in [
        (&["p99<5ms"][..], 0),
        (&["p99<1ms"], EXIT_NOT_VALID),
        (&["rate>100%"], EXIT_NOT_VALID),
        (&["errors==0"], EXIT_BROKEN),
        (&["p99<1ms", "errors==0"], EXIT_BROKEN),
        (&["errors==0", "p99<1ms"], EXIT_BROKEN),
    ] {
        let judged = judge(asserts, &[done(false)]);
        assert_eq!(judged.exit_code, exit_code, "{asserts:?}");
        let doubts = judged.text.contains("not valid");
        assert_eq!(
            doubts,
            exit_code != 0 && asserts.contains(&"p99<1ms") || asserts == ["rate>100%"],
            "{}",
            judged.text
        );
    }
}

/// The generator was late for the slowest requests only: an assertion about p50 is about the
/// server.
#[test]
fn percentiles_without_the_generators_share_are_the_servers() {
    let share = |percent: f64, is_server: bool| Share {
        percent,
        response_ns: 2_000_000,
        generator_ns: if is_server { 0 } else { 1_000_000 },
        is_server,
    };
    let mut late = done(false);
    late.verdict.late_percents = vec![99.0];
    late.verdict.shares = vec![share(50.0, true), share(90.0, true), share(99.0, false)];
    for (assert, exit_code) in [
        ("p50<1ms", EXIT_BROKEN),
        ("p90<1ms", EXIT_BROKEN),
        ("p99<1ms", EXIT_NOT_VALID),
        ("service.p50<1ms", EXIT_NOT_VALID),
    ] {
        assert_eq!(judge(&[assert], std::slice::from_ref(&late)).exit_code, exit_code, "{assert}");
    }
}

#[test]
fn each_assertion_is_checked_on_each_phase() {
    let judged = judge(&["p99<1ms", "p99<5ms"], &[done(false), done(true)]);
    assert_eq!(judged.exit_code, EXIT_BROKEN);
    let phases: Vec<(usize, bool)> =
        judged.facts.iter().map(|fact| (fact.phase, fact.checked.is_met)).collect();
    assert_eq!(phases, [(0, false), (0, true), (1, false), (1, true)]);
    assert_eq!(judged.text.lines().count(), 5, "{}", judged.text);
    assert!(judged.text.contains("\n  step 2: p99<1ms: broken ("), "{}", judged.text);
}
