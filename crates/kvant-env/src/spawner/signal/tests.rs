use super::*;
use crate::clock::{MockClock, SystemClock};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

fn never() -> bool {
    false
}

#[test]
fn a_state_that_is_ready_needs_no_notification() {
    let signal = Signal::new(WaitKind::Idle, "test");
    assert!(signal.wait_until(&MockClock::new(0), Some(0), &mut || true, &never));
}

#[test]
fn a_deadline_that_has_passed_ends_the_wait_after_one_look() {
    let signal = Signal::new(WaitKind::Idle, "test");
    let clock = MockClock::new(0);
    clock.advance_to(10);
    let mut looks = 0;
    assert!(!signal.wait_until(
        &clock,
        Some(10),
        &mut || {
            looks += 1;
            false
        },
        &never
    ));
    assert!(looks >= 1);
}

#[test]
fn a_deadline_ends_the_wait_although_notifications_keep_coming() {
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
fn a_notification_while_ready_looks_is_not_lost() {
    let signal = Signal::new(WaitKind::Idle, "test");
    let mut looks = 0;
    let mut ready = || {
        looks += 1;
        // Had the waiter read the count only now, nothing would wake it again.
        signal.notify_all();
        looks == 3
    };
    assert!(signal.wait_until(&SystemClock::new(), None, &mut ready, &never));
}

#[test]
fn a_panic_in_ready_leaves_no_waiter_behind() {
    let signal = Signal::new(WaitKind::Idle, "test");
    let mut looks = 0;
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        signal.wait_until(
            &SystemClock::new(),
            None,
            &mut || {
                looks += 1;
                assert!(looks < 2, "the second look panics");
                false
            },
            &never,
        )
    }));
    assert!(outcome.is_err());
    assert_eq!(signal.waiter_count.load(Ordering::Relaxed), 0);
}

#[test]
fn two_threads_that_wait_for_each_other_never_miss_a_turn() {
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
fn giving_up_ends_a_wait_that_nobody_notifies() {
    let (signal, gave_up) = (Signal::new(WaitKind::Idle, "test"), AtomicBool::new(false));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            signal.wait_until(&SystemClock::new(), None, &mut never, &|| {
                gave_up.load(Ordering::Relaxed)
            })
        });
        gave_up.store(true, Ordering::Relaxed);
        assert!(!waiter.join().unwrap());
    });
}
