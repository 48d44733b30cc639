use super::*;
use std::cell::Cell;

#[test]
fn a_subject_that_never_rests_is_known() {
    const WAITS_MAX: u32 = 5;
    // It uses 20 ms of CPU time in each of the first waits.
    let rests_after = |busy_waits: u32| {
        let waits = Cell::new(0);
        comes_to_rest(
            || {
                let cpu_ns = u64::from(waits.get().min(busy_waits)) * 20_000_000;
                Some(Used { cpu_ns, written_bytes: 0 })
            },
            || {
                waits.set(waits.get() + 1);
                waits.get() <= WAITS_MAX
            },
        )
    };
    assert!(rests_after(0) && rests_after(4));
    assert!(!rests_after(5));
    assert!(comes_to_rest(|| None, || true), "unknown");
}

#[test]
fn a_subject_that_computes_or_writes_is_not_idle() {
    let before = Used { cpu_ns: 5_000_000_000, written_bytes: 1 << 30 };
    let after = |cpu_ms: u64, written_bytes: u64| Used {
        cpu_ns: before.cpu_ns + cpu_ms * 1_000_000,
        written_bytes: before.written_bytes + written_bytes,
    };
    assert!(is_idle(before, after(0, 0)));
    assert!(is_idle(before, after(10, 64 << 10)));
    assert!(!is_idle(before, after(20, 0)));
    assert!(!is_idle(before, after(0, 1 << 20)));
}
