use super::*;
use kvant_base::Events;

const MS: u64 = 1_000_000;

fn lag(overload: Overload) -> (Lag, Arc<Refusals>) {
    let refusals = Refusals::new(Events::new(16));
    let config = ServerConfig { overload, ..ServerConfig::default() };
    (Lag::new(&config, Arc::clone(&refusals)), refusals)
}

/// Runs turns of the event loop of `turn_ms` each, with a read at every millisecond, from
/// `start_ms`; returns what the last turn refused.
fn run(lag: &Lag, class: Class, start_ms: u64, turn_ms: u64, turn_count: u64) -> Vec<Refusal> {
    let mut refused = Vec::new();
    for turn in 0..turn_count {
        refused.clear();
        let turn_start_ms = start_ms + turn * turn_ms;
        for lag_ms in 0..turn_ms {
            let now_ns = (turn_start_ms + lag_ms) * MS;
            refused.extend(lag.admit(class, lag_ms * MS, now_ns));
        }
    }
    refused
}

#[test]
fn long_turns_refuse_costly_late_requests() {
    let (lag, refusals) = lag(Overload::Adaptive);
    lag.note_cost(Class::Read, 60_000);
    lag.note_cost(Class::Write, 40_000);
    assert!(run(&lag, Class::Read, 1_000, 20, 4).is_empty());
    // 6 to 19 ms late.
    assert_eq!(run(&lag, Class::Read, 1_080, 20, 10), [Refusal::Overloaded; 14]);
    assert!(run(&lag, Class::Write, 1_280, 20, 10).is_empty());
    assert!(run(&lag, Class::Range, 1_480, 20, 10).is_empty());
    assert!(refusals.count(Class::Read, Refusal::Overloaded) >= 14);
    assert_eq!(refusals.count(Class::Write, Refusal::Overloaded), 0);
}

#[test]
fn short_turns_and_single_long_ones_refuse_nothing() {
    let (lag, _) = lag(Overload::Adaptive);
    lag.note_cost(Class::Read, MS);
    assert!(run(&lag, Class::Read, 1_000, 5, 100).is_empty());
    assert!(run(&lag, Class::Read, 1_500, 90, 1).is_empty());
    assert!(run(&lag, Class::Read, 1_590, 5, 100).is_empty());
    // Overload, then nothing for a long time.
    run(&lag, Class::Read, 3_000, 20, 20);
    assert!(run(&lag, Class::Read, 60_000, 20, 1).is_empty());
}

#[test]
fn turns_longer_than_the_interval_are_overload_too() {
    let (lag, _) = lag(Overload::Adaptive);
    lag.note_cost(Class::Range, MS);
    assert!(run(&lag, Class::Range, 1_000, 300, 1).is_empty());
    assert!(!run(&lag, Class::Range, 1_300, 300, 4).is_empty());
}

#[test]
fn requests_that_waited_too_long_are_refused_under_every_policy() {
    for policy in [Overload::Adaptive, Overload::Reject, Overload::CallerRuns] {
        let (lag, refusals) = lag(policy);
        assert_eq!(lag.admit(Class::Write, 1_000 * MS, 5_000 * MS), None);
        let refusal = lag.admit(Class::Write, 1_001 * MS, 5_001 * MS);
        assert_eq!(refusal, Some(Refusal::WaitedTooLong));
        assert_eq!(refusals.count(Class::Write, Refusal::WaitedTooLong), 1);
    }
}

#[test]
fn the_classic_policies_ignore_shorter_lag() {
    let (lag, _) = lag(Overload::Reject);
    lag.note_cost(Class::Read, MS);
    assert!(run(&lag, Class::Read, 1_000, 20, 100).is_empty());
}
