use super::*;

const MS: u64 = 1_000_000;
const TARGET: u64 = 5 * MS;
const INTERVAL: u64 = 100 * MS;

/// Observes a wait each millisecond from `start_ms`; returns whether that is overload in the end.
fn observe(codel: &mut Codel, start_ms: u64, waits_ms: impl IntoIterator<Item = u64>) -> bool {
    for (index, wait_ms) in waits_ms.into_iter().enumerate() {
        codel.observe(wait_ms * MS, TARGET, INTERVAL, (start_ms + index as u64) * MS);
    }
    codel.is_overloaded()
}

#[test]
fn only_an_interval_of_long_waits_is_overload() {
    let mut codel = Codel::default();
    assert!(!observe(&mut codel, 0, vec![50; 100]));
    assert!(observe(&mut codel, 100, [50]));
    assert!(observe(&mut codel, 101, vec![6; 500]));
    assert!(!observe(&mut codel, 601, [5]));
    assert!(!observe(&mut codel, 602, vec![50; 100]));
}

#[test]
fn bursts_that_drain_are_no_overload() {
    let mut codel = Codel::default();
    for burst in 0..20 {
        assert!(!observe(&mut codel, burst * 100, (1..=99).rev()));
    }
}

#[test]
fn waits_before_a_pause_do_not_count() {
    let mut codel = Codel::default();
    assert!(observe(&mut codel, 0, vec![50; 101]));
    assert!(!observe(&mut codel, 10_000, [50]));
}
