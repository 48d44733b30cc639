//! When requests were slow, and whether more of them came then.

use super::explain;
use super::simulation::{MS, SECOND, Simulation};
use crate::explain::Evidence;

/// A thousand requests a second, slow from 20 to 25 s, of which then come so many in 100 ms.
fn slow_for_five_seconds(count: u64) -> Evidence {
    let mut evidence = Simulation::default().evidence();
    for window in &mut evidence.windows[200..250] {
        let get = window.operations.get_mut("get").unwrap();
        get.count = count;
        get.values = vec![(40 * MS, count)];
    }
    evidence
}

fn sentence(evidence: &Evidence) -> String {
    let told = explain(evidence).verdict;
    told.into_iter().find(|sentence| sentence.contains(" was slow from ")).unwrap()
}

#[test]
fn a_burst_is_told_with_its_time_and_its_rate() {
    let slow_time = explain(&slow_for_five_seconds(1_000)).slow_time.unwrap();
    assert_eq!((slow_time.start_ns, slow_time.end_ns), (20 * SECOND, 25 * SECOND));
    assert_eq!(slow_time.stretch_count, 1);
    let rate = &slow_time.rates[0];
    assert_eq!(rate.operation, "get");
    assert!((9_700.0..10_001.0).contains(&rate.slow), "{rate:?}");
    assert!((900.0..1_100.0).contains(&rate.calm), "{rate:?}");
    let told = sentence(&slow_for_five_seconds(1_000));
    assert!(told.contains("get was slow from 20.000 s to 25.000 s"), "{told}");
    assert!(told.contains(" get requests a second (otherwise 10"), "{told}");
}

#[test]
fn a_slow_time_with_the_usual_load_is_told_as_that() {
    let told = sentence(&slow_for_five_seconds(100));
    assert!(told.ends_with("the server answered as many requests as otherwise."), "{told}");
}

/// Regression: the rate of no time at all was told as 0 requests a second.
#[test]
fn a_slow_time_that_leaves_no_other_is_compared_with_none() {
    let mut evidence = Simulation::default().evidence();
    evidence.windows.truncate(20);
    let is_slow = |at: usize| !(7..10).contains(&at) && !(14..17).contains(&at);
    for (_, window) in evidence.windows.iter_mut().enumerate().filter(|(at, _)| is_slow(*at)) {
        let get = window.operations.get_mut("get").unwrap();
        get.values = vec![(40 * MS, get.count)];
    }
    let slow_time = explain(&evidence).slow_time.unwrap();
    assert!(slow_time.rates.is_empty(), "{:?}", slow_time.rates);
    let told = sentence(&evidence);
    assert!(!told.contains("otherwise") && !told.contains("meanwhile"), "{told}");
}

#[test]
fn slow_windows_with_calm_ones_between_them_are_no_slow_time() {
    let mut evidence = Simulation::default().evidence();
    for window in evidence.windows.iter_mut().step_by(9) {
        let get = window.operations.get_mut("get").unwrap();
        get.values = vec![(40 * MS, get.count)];
    }
    let explanation = explain(&evidence);
    assert!(explanation.rows.iter().any(|row| row.excess_ns > 0));
    assert_eq!(explanation.slow_time, None);
}

/// From 20 to 23 s nothing is sent; what came meanwhile is answered in so many windows of 100 ms,
/// the first of it after 3 s.
fn stood_still(answered_in: usize) -> Evidence {
    let mut evidence = Simulation::default().evidence();
    for window in &mut evidence.windows[200..230] {
        window.operations.clear();
    }
    for (at, window) in evidence.windows[230..230 + answered_in].iter_mut().enumerate() {
        let get = window.operations.get_mut("get").unwrap();
        get.count = 100 + 3_000 / answered_in as u64;
        get.values = vec![(3 * SECOND - at as u64 * SECOND / 5, get.count)];
    }
    evidence
}

#[test]
fn a_server_that_stood_still_was_slow_while_it_sent_nothing() {
    for (answered_in, end_ns) in [(12, 24_200 * MS), (5, 23_500 * MS)] {
        let slow_time = explain(&stood_still(answered_in)).slow_time.unwrap();
        assert_eq!((slow_time.start_ns, slow_time.end_ns), (20 * SECOND, end_ns));
        assert!((900.0..1_100.0).contains(&slow_time.rates[0].slow), "{slow_time:?}");
    }
}

#[test]
fn one_long_request_does_not_make_the_calm_time_before_it_slow() {
    let mut evidence = slow_for_five_seconds(1_000);
    // One that a slow sender began 15 s before.
    evidence.windows[200].operations.get_mut("get").unwrap().values.push((15 * SECOND, 1));
    let slow_time = explain(&evidence).slow_time.unwrap();
    assert_eq!((slow_time.start_ns, slow_time.end_ns), (20 * SECOND, 25 * SECOND));
}
