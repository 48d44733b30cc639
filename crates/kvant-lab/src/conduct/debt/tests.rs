use super::*;
use crate::conduct::measurement::{Measured, result_file};
use kvant_load::{LoadConfig, Outcome, verdict};
use serde_json::json;

const MB: u64 = 1_000_000;

/// Samples, one a second, of a server that flushes 10 MB in each of them, with this debt.
fn samples(flushes_per_s: u64, debt_mb: impl Fn(u64) -> u64) -> Vec<StatsSample> {
    let sample = |second: u64| StatsSample {
        asked_ns: 0,
        at_ns: second * 1_000_000_000,
        stats: json!({"engine": {
            "flushes": {"count": second * flushes_per_s, "written_bytes": second * 10 * MB},
            "compactions": {"debt_bytes": debt_mb(second) * MB},
        }}),
    };
    (0..=100).map(sample).collect()
}

fn within_30_s(samples: &[StatsSample]) -> Option<String> {
    growth(samples, 50_000_000_000, 80_000_000_000)
}

#[test]
fn a_debt_that_rises_and_falls_does_not_grow() {
    assert_eq!(within_30_s(&samples(1, |second| second % 9 * 40)), None);
    assert_eq!(within_30_s(&samples(1, |second| 900 - second * 9)), None, "it is paid");
    // A tenth of what is flushed.
    assert_eq!(within_30_s(&samples(1, |second| second)), None);
}

#[test]
fn a_debt_whose_least_value_grows_is_not_sustained() {
    let grown = within_30_s(&samples(1, |second| second * 8 + second % 5 * 40)).unwrap();
    assert!(grown.ends_with("while 300 MB were flushed"), "{grown}");
}

#[test]
fn few_flushes_short_phases_and_other_engines_say_nothing() {
    let rare = samples(0, |second| second * 8);
    assert_eq!(within_30_s(&rare), None);
    let grows = samples(2, |second| second * 8);
    assert!(growth(&grows, 50_000_000_000, 60_000_000_000).is_some());
    assert_eq!(growth(&grows, 50_000_000_000, 57_000_000_000), None, "too short");
    // 10 MB a flush: two rounds of level 0 are 80 MB, which is more than a quarter of 100 MB.
    let slow = samples(1, |second| second * 8);
    assert_eq!(growth(&slow, 50_000_000_000, 60_000_000_000), None);
    let sample = |at_ns| StatsSample { asked_ns: at_ns, at_ns, stats: json!({"engine": null}) };
    assert_eq!(growth(&[sample(1), sample(2)], 0, 3), None);
    assert_eq!(growth(&[], 0, 3), None);
}

#[test]
fn a_rate_that_is_held_but_not_sustained_is_noted() {
    let outcome = Outcome { measured_ns: 30_000_000_000, ..Outcome::default() };
    let measurement = Measurement {
        start_ns: Some(50_000_000_000),
        phases: vec![Measured { verdict: verdict::judge(&outcome), outcome }],
        found: None,
        is_closed: false,
        file: result_file(&LoadConfig::default(), "put"),
    };
    let grows = samples(1, |second| second * 8);
    let noted = |kind, samples: &[StatsSample]| note(kind, &measurement, Some(samples)).is_some();
    assert!(noted(PhaseKind::Hold, &grows));
    assert!(!noted(PhaseKind::Hold, &samples(1, |_| 0)));
    assert!(!noted(PhaseKind::Closed, &grows), "beyond its limit");
    assert_eq!(note(PhaseKind::Hold, &measurement, None), None);
}
