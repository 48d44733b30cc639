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
    let rate = &slow_time.rates[0];
    assert_eq!((rate.operation.as_str(), rate.slow), ("get", 10_000.0));
    assert!((900.0..1_100.0).contains(&rate.calm), "{rate:?}");
    let told = sentence(&slow_for_five_seconds(1_000));
    assert!(told.contains("get was slow from 20.000 s to 25.000 s"), "{told}");
    assert!(told.contains("answered 10000 get requests a second (otherwise "), "{told}");
}

#[test]
fn a_slow_time_with_the_usual_load_is_told_as_that() {
    let told = sentence(&slow_for_five_seconds(100));
    assert!(told.ends_with("the server answered as many requests as otherwise."), "{told}");
}

#[test]
fn single_slow_windows_are_no_slow_time() {
    let mut evidence = Simulation::default().evidence();
    for window in evidence.windows.iter_mut().step_by(50) {
        let get = window.operations.get_mut("get").unwrap();
        get.values = vec![(40 * MS, get.count)];
    }
    let explanation = explain(&evidence);
    assert!(explanation.rows.iter().any(|row| row.excess_ns > 0));
    assert_eq!(explanation.slow_time, None);
}
