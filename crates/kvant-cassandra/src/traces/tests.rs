use super::{FETCHES_MAX, KEPT_COUNT, Traces};
use scylla::observability::tracing::TracingInfo;

fn info(duration_us: i32) -> TracingInfo {
    TracingInfo {
        client: None,
        command: None,
        coordinator: Some([127, 0, 0, 2].into()),
        duration: Some(duration_us),
        parameters: None,
        request: None,
        started_at: None,
        events: Vec::new(),
    }
}

#[test]
fn the_last_traces_are_kept() {
    let traces = Traces::new();
    for number in 0..=KEPT_COUNT {
        traces.keep(number as u128, info(number as i32));
    }
    assert_eq!(traces.get(0), None);
    let last = traces.get(KEPT_COUNT as u128).expect("it is the last");
    assert_eq!(last.duration_us, Some(KEPT_COUNT as i32));
    assert_eq!(last.coordinator.as_deref(), Some("127.0.0.2"));
}

#[test]
fn few_requests_are_traced_at_a_time() {
    let traces = Traces::new();
    let slots: Vec<_> = (0..FETCHES_MAX).map(|_| traces.slot().expect("there is room")).collect();
    assert!(traces.slot().is_none());
    drop(slots);
    assert!(traces.slot().is_some());
}
