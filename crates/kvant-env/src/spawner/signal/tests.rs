use super::*;
use crate::clock::SystemClock;
use crate::testing::MockClock;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

fn never() -> bool {
    false
}

#[test]
fn a_ready_state_needs_no_notification() {
    let signal = Signal::new(WaitKind::Idle, "test");
    assert!(signal.wait_until(&MockClock::new(0), Some(0), &mut || true, &never));
}

#[test]
fn a_past_deadline_ends_the_wait_after_one_check() {
    let signal = Signal::new(WaitKind::Idle, "test");
    let clock = MockClock::new(0);
    clock.advance_to(10);
    let mut check_count = 0;
    assert!(!signal.wait_until(
        &clock,
        Some(10),
        &mut || {
            check_count += 1;
            false
        },
        &never
    ));
    assert!(check_count >= 1);
}

#[test]
fn a_deadline_ends_the_wait_despite_steady_notifications() {
    let signal = Signal::new(WaitKind::Idle, "test");
    let clock = MockClock::new(0);
    let mut ready = || {
        signal.notify_all();
        clock.advance_to(clock.monotonic_ns() + 1);
        false
    };
    assert!(!signal.wait_until(&clock, Some(100), &mut ready, &never));
}

#[test]
fn a_notification_during_a_check_is_not_lost() {
    let signal = Signal::new(WaitKind::Idle, "test");
    let mut check_count = 0;
    let mut ready = || {
        check_count += 1;
        // A waiter that reads the count only after this would never wake up.
        signal.notify_all();
        check_count == 3
    };
    assert!(signal.wait_until(&SystemClock::new(), None, &mut ready, &never));
}

#[test]
fn a_panic_in_ready_unregisters_the_waiter() {
    let signal = Signal::new(WaitKind::Idle, "test");
    let mut check_count = 0;
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        signal.wait_until(
            &SystemClock::new(),
            None,
            &mut || {
                check_count += 1;
                assert!(check_count < 2, "the second check panics");
                false
            },
            &never,
        )
    }));
    assert!(outcome.is_err());
    assert_eq!(signal.waiter_count.load(Ordering::Relaxed), 0);
}

#[test]
fn two_threads_that_alternate_never_miss_a_turn() {
    const TURN_COUNT: u64 = 20_000;
    let (signal, turn, clock) =
        (Signal::new(WaitKind::Idle, "test"), AtomicU64::new(0), SystemClock::new());
    thread::scope(|scope| {
        for parity in 0..2 {
            let (signal, turn, clock) = (&signal, &turn, &clock);
            scope.spawn(move || {
                for mine in (parity..TURN_COUNT).step_by(2) {
                    assert!(signal.wait_until(
                        clock,
                        None,
                        &mut || turn.load(Ordering::Relaxed) == mine,
                        &never
                    ));
                    turn.store(mine + 1, Ordering::Relaxed);
                    signal.notify_all();
                }
            });
        }
    });
    assert_eq!(turn.load(Ordering::Relaxed), TURN_COUNT);
}

#[test]
fn cancelling_ends_a_wait_without_notification() {
    let (signal, is_cancelled) = (Signal::new(WaitKind::Idle, "test"), AtomicBool::new(false));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            signal.wait_until(&SystemClock::new(), None, &mut never, &|| {
                is_cancelled.load(Ordering::Relaxed)
            })
        });
        is_cancelled.store(true, Ordering::Relaxed);
        assert!(!waiter.join().unwrap());
    });
}
