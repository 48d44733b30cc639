use super::*;
use kvant_load::{Histogram, OpRecord};

/// A second with so many responses after `response_ns`.
fn second(number: u64, count: u64, response_ns: u64) -> Interval {
    let mut response = Histogram::new();
    response.record_many_ns(response_ns, count);
    let op = OpRecord { service: response.clone(), response, ..OpRecord::default() };
    Interval {
        start_ns: (number - 1) * 1_000_000_000,
        end_ns: number * 1_000_000_000,
        ops: vec![op],
        planned: count,
        sent: count,
        completed: count,
        ..Interval::default()
    }
}

/// The load ends at the broken second, and what was in flight then is reported after it.
#[test]
fn an_assertion_that_ended_the_load_stays_broken() {
    let asserts = [Assertion::parse("p99<5ms").expect("an assertion")];
    let judge = Judge::new(&asserts, None).expect("no file is read");
    let (mut watchdog, ops) = (Watchdog::new(&asserts), OpNames::default());
    watchdog.begin(&Phase::default(), &judge);
    assert!(!watchdog.is_broken_by(&second(1, 100, 1_000_000), &ops));
    assert!(watchdog.is_broken_by(&second(2, 10, 9_000_000), &ops));
    assert!(watchdog.is_broken_by(&second(3, 10_000, 1_000_000), &ops));
    assert!(watchdog.has_broken());
    assert!(watchdog.broken.is_some_and(|broken| broken.contains("after 2")));
}
