use super::*;

const MS: u64 = 1_000_000;
const WAIT_MAX: u64 = 1_000 * MS;

/// A control that has refused something at 1 s.
fn overloaded(cost_ns: u64) -> Control {
    let mut control = Control::default();
    // The smoothed cost follows the measurements step by step.
    for _ in 0..200 {
        control.note_cost(cost_ns);
    }
    assert!(!control.admit(1, WAIT_MAX, WAIT_MAX, WAIT_MAX));
    assert!(control.is_overloaded());
    control
}

#[test]
fn the_limit_is_the_interval_and_in_overload_the_target() {
    let mut calm = Control::default();
    calm.note_cost(MS);
    assert!(calm.admit(1, INTERVAL_NS, WAIT_MAX, WAIT_MAX));
    assert!(!calm.admit(1, 50 * MS, 40 * MS, WAIT_MAX));
    let mut busy = overloaded(MS);
    assert!(busy.admit(1, TARGET_NS, WAIT_MAX, WAIT_MAX));
    assert!(!busy.admit(1, TARGET_NS + 1, WAIT_MAX, WAIT_MAX));
}

#[test]
fn slow_work_gets_a_target_that_keeps_workers_busy() {
    let mut control = overloaded(80 * MS);
    assert!(control.admit(1, 159 * MS, WAIT_MAX, WAIT_MAX));
    assert!(!control.admit(1, 161 * MS, WAIT_MAX, WAIT_MAX));
    assert!(!control.gives_up(319 * MS));
    assert!(control.gives_up(321 * MS));
}

#[test]
fn only_overload_gives_up_admitted_requests() {
    assert!(!Control::default().gives_up(WAIT_MAX));
    let mut control = Control::default();
    for now_ms in 0..=100 {
        assert!(!control.gives_up(6 * MS));
        control.left(6 * MS, now_ms * MS);
    }
    assert!(control.gives_up(6 * MS));
    assert!(!control.gives_up(5 * MS));
    control.left(5 * MS, 101 * MS);
    assert!(!control.gives_up(6 * MS));
}

#[test]
fn overload_goes_on_while_more_than_a_few_are_refused() {
    let mut control = overloaded(MS);
    let mut now_ns = WAIT_MAX;
    let mut offer = |refused_one_in: u64, count: u64| {
        for index in 0..count {
            now_ns += MS;
            let wait_ns = if index % refused_one_in == 0 { 6 * MS } else { 0 };
            control.admit(1, wait_ns, WAIT_MAX, now_ns);
        }
        control.is_overloaded()
    };
    assert!(offer(10, 2_000));
    assert!(!offer(30, 1_100));
}
