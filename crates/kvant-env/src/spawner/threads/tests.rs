use super::*;
use crate::clock::SystemClock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

/// A task that does what a closure does.
struct TestTask<F>(F);

impl<F: Fn() -> Step + Send + Sync> Task for TestTask<F> {
    fn name(&self) -> &str {
        "test-task"
    }

    fn step(&self) -> Step {
        (self.0)()
    }
}

fn spawner() -> (Arc<ThreadSpawner>, Arc<SystemClock>) {
    let clock = Arc::new(SystemClock::new());
    (
        Arc::new(ThreadSpawner::new(Arc::clone(&clock) as Arc<dyn Clock>)),
        clock,
    )
}

#[test]
fn a_task_steps_until_it_has_finished() {
    let (spawner, _) = spawner();
    let count = Arc::new(AtomicU64::new(0));
    let steps = Arc::clone(&count);
    let handle = spawner.spawn(Arc::new(TestTask(move || {
        assert_eq!(thread::current().name(), Some("test-task"));
        match steps.fetch_add(1, Ordering::Relaxed) {
            9 => Step::Finished,
            _ => Step::Worked,
        }
    })));
    handle.join();
    handle.join();
    handle.wake();
    assert_eq!(count.load(Ordering::Relaxed), 10);
    assert_eq!(
        Arc::strong_count(&count),
        1,
        "the task is dropped with its thread"
    );
}

#[test]
fn every_wake_is_followed_by_a_step_that_sees_what_was_done_before_it() {
    const REQUEST_COUNT: u64 = 10_000;
    let (spawner, _) = spawner();
    let requested = Arc::new(AtomicU64::new(0));
    let served = Arc::new(AtomicU64::new(0));
    let signal = Arc::new(Signal::new());
    let handle = spawner.spawn(Arc::new(TestTask({
        let (requested, served, signal) = (Arc::clone(&requested), Arc::clone(&served), Arc::clone(&signal));
        move || {
            let seen = requested.load(Ordering::Relaxed);
            served.store(seen, Ordering::Relaxed);
            signal.notify_all();
            if seen == REQUEST_COUNT {
                Step::Finished
            } else {
                Step::Idle
            }
        }
    })));
    for request in 1..=REQUEST_COUNT {
        requested.store(request, Ordering::Relaxed);
        handle.wake();
        assert!(spawner.wait_until(&signal, None, &mut || served.load(Ordering::Relaxed) == request));
    }
    handle.join();
}

#[test]
fn an_idle_task_steps_again_at_its_time() {
    let (spawner, clock) = spawner();
    let deadline_ns = clock.monotonic_ns() + 2_000_000;
    let handle = spawner.spawn(Arc::new(TestTask({
        let clock = Arc::clone(&clock);
        move || match clock.monotonic_ns() {
            now_ns if now_ns < deadline_ns => Step::IdleUntil(deadline_ns),
            _ => Step::Finished,
        }
    })));
    handle.join();
    assert!(clock.monotonic_ns() >= deadline_ns);
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let (spawner, clock) = spawner();
    let deadline_ns = clock.monotonic_ns() + 1_000_000;
    assert!(!spawner.wait_until(&Signal::new(), Some(deadline_ns), &mut || false));
    assert!(clock.monotonic_ns() >= deadline_ns);
}

#[test]
fn a_panic_of_a_task_reaches_joiners_and_waiters() {
    let (spawner, _) = spawner();
    let handle = spawner.spawn(Arc::new(TestTask(|| panic!("expected by the test"))));
    let wait = || spawner.wait_until(&Signal::new(), None, &mut || false);
    assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
    let panic = catch_unwind(AssertUnwindSafe(|| handle.join())).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"expected by the test"));
    assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
    assert!(
        spawner.wait_until(&Signal::new(), None, &mut || true),
        "what is ready needs no task"
    );
}
