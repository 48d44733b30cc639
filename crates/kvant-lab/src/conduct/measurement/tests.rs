use super::*;
use kvant_load::find_max::{Judgement, Point};
use kvant_load::{OpNames, verdict};

/// A phase of a second with 1,000 responses, some of them refusals.
fn phase(refused: u64) -> Measured {
    let mut outcome = Outcome { measured_ns: 1_000_000_000, ..Outcome::default() };
    (outcome.total.planned, outcome.total.completed) = (1_000, 1_000);
    outcome.total.errors.status = refused;
    Measured { verdict: verdict::judge(&outcome), outcome }
}

fn measurement(phases: Vec<Measured>, found: Option<FindMax>) -> Measurement {
    let file = result_file(&LoadConfig::default(), "get");
    Measurement { start_ns: Some(0), phases, is_closed: found.is_none(), found, file }
}

#[test]
fn the_maximum_of_a_closed_loop_is_its_goodput() {
    assert_eq!(measurement(vec![phase(0)], None).maximum(), Some(1_000.0));
    assert_eq!(measurement(vec![phase(400)], None).maximum(), Some(600.0));
}

/// Regression: they were shown as 0.
#[test]
fn an_external_generator_has_no_quantiles() {
    assert_eq!(measurement(vec![phase(0)], None).figures(), "1.00k/s");
    let refused = measurement(vec![phase(25)], None);
    assert_eq!(refused.figures(), "1.00k/s, 2.5 % of the requests failed");
    let mut timed = phase(0);
    let op = OpNames::default().intern("get");
    timed.outcome.total.op_mut(op).response.record_many_ns(1_000_000, 1_000);
    assert!(measurement(vec![timed], None).figures().starts_with("1.00k/s, p50 1.00ms, p99 "));
}

#[test]
fn errors_are_noted_except_beyond_the_limit() {
    let with_errors = measurement(vec![phase(0), phase(25)], None);
    assert_eq!(with_errors.notes(PhaseKind::Closed), ["2.5 % of the requests failed"]);
    assert!(with_errors.figures().contains("2.5 % of the requests failed"));
    assert!(with_errors.notes(PhaseKind::Factors).is_empty());
    assert!(measurement(vec![phase(1)], None).notes(PhaseKind::Hold).is_empty());
}

#[test]
fn a_rate_that_is_not_confirmed_is_noted_with_its_reason() {
    let notes = |is_confirmed: bool, reasons: &[&str]| {
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        let at_80 = Point {
            purpose: Purpose::At80,
            rate: 80.0,
            achieved: 80.0,
            p50_ns: 0,
            p99_ns: 0,
            p999_ns: 0,
            max_ns: 0,
            send_lag_p99_ns: 0,
            judgement: Judgement { reasons, is_close: false },
            generator: None,
            disturbance: None,
        };
        let found = FindMax {
            saturation_rate: 120.0,
            rate: Some(100.0),
            is_confirmed,
            limit: None,
            points: vec![at_80],
            at_80: None,
            is_cut_short: false,
        };
        measurement(Vec::new(), Some(found)).notes(PhaseKind::FindMax)
    };
    assert!(notes(true, &[]).is_empty());
    let why = "the rate is not confirmed: at 80 % of it, the compaction debt grew";
    assert_eq!(notes(false, &["the compaction debt grew"]), [why]);
    assert_eq!(notes(false, &[]), ["the rate is not confirmed by longer runs"]);
}
