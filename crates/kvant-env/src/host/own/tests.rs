use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Uses CPU time until `until`.
fn work(until: &dyn Fn() -> bool) {
    let mut sum = 0u64;
    while !until() {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
    }
}

#[test]
fn figures_grow_with_what_is_used() {
    let mut own = OwnUse::open();
    let before = own.read();
    let until = Instant::now() + Duration::from_millis(50);
    work(&|| Instant::now() >= until);
    let after = own.read();
    assert!(after.cpu_ns > before.cpu_ns, "{before:?} {after:?}");
    for (before, after) in [
        (before.run_queue_wait_ns, after.run_queue_wait_ns),
        (before.stolen_ns, after.stolen_ns),
        (before.all_cpu_ns, after.all_cpu_ns),
        (before.read_bytes, after.read_bytes),
        (before.written_bytes, after.written_bytes),
        (before.resent_segments, after.resent_segments),
    ] {
        assert!(before.is_some() && after >= before, "{before:?} {after:?}");
    }
}

#[test]
fn threads_wait_in_the_run_queue_and_keep_their_share_when_they_end() {
    let mut own = OwnUse::open();
    let before = own.read();
    let is_over = AtomicBool::new(false);
    let cpu_count = crate::host::cpu_count();
    let waited = std::thread::scope(|scope| {
        for _ in 0..4 * cpu_count {
            scope.spawn(|| work(&|| is_over.load(Ordering::Relaxed)));
        }
        // Four threads share each CPU.
        let waited = loop {
            let now = own.read();
            if now.run_queue_wait_ns > before.run_queue_wait_ns.map(|ns| ns + 10_000_000) {
                break now.run_queue_wait_ns;
            }
        };
        is_over.store(true, Ordering::Relaxed);
        waited
    });
    let after = (0..=READINGS_PER_LISTING).map(|_| own.read()).last();
    assert!(after.is_some_and(|after| after.run_queue_wait_ns >= waited));
}
