use super::*;
use crate::clock::SystemClock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

/// A task that calls a closure.
struct TestTask<F>(F);

/// A task that records the niceness of its thread.
struct NicenessTask {
    is_background: bool,
    niceness: std::sync::OnceLock<i32>,
}

impl Task for NicenessTask {
    fn name(&self) -> &str {
        "niceness-task"
    }

    fn step(&self) -> Step {
        let niceness = rustix::process::getpriority_process(None).unwrap();
        self.niceness.set(niceness).unwrap();
        Step::Finished
    }

    fn is_background(&self) -> bool {
        self.is_background
    }
}

#[test]
fn only_background_tasks_run_at_lower_priority() {
    let (spawner, _) = spawner();
    let ours = rustix::process::getpriority_process(None).unwrap();
    let niceness_of = |is_background| {
        let task = Arc::new(NicenessTask { is_background, niceness: std::sync::OnceLock::new() });
        spawner.spawn(task.clone()).join();
        *task.niceness.get().unwrap()
    };
    let expected = (ours + BACKGROUND_NICENESS).min(NICENESS_MAX);
    assert_eq!(niceness_of(true), expected);
    assert_eq!(niceness_of(false), ours);
    assert_eq!(rustix::process::getpriority_process(None).unwrap(), ours);
}

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
    (Arc::new(ThreadSpawner::new(Arc::clone(&clock) as Arc<dyn Clock>)), clock)
}

#[test]
fn a_task_runs_until_it_finishes() {
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
    assert_eq!(Arc::strong_count(&count), 1, "the task is dropped with its thread");
}

#[test]
fn a_step_after_a_wake_sees_all_changes_before_it() {
    const REQUEST_COUNT: u64 = 10_000;
    let (spawner, _) = spawner();
    let requested = Arc::new(AtomicU64::new(0));
    let served = Arc::new(AtomicU64::new(0));
    let signal = Arc::new(Signal::new(WaitKind::Idle, "test"));
    let handle = spawner.spawn(Arc::new(TestTask({
        let (requested, served, signal) =
            (Arc::clone(&requested), Arc::clone(&served), Arc::clone(&signal));
        move || {
            let seen = requested.load(Ordering::Relaxed);
            served.store(seen, Ordering::Relaxed);
            signal.notify_all();
            if seen == REQUEST_COUNT { Step::Finished } else { Step::Idle }
        }
    })));
    for request in 1..=REQUEST_COUNT {
        requested.store(request, Ordering::Relaxed);
        handle.wake();
        assert!(
            spawner.wait_until(&signal, None, &mut || served.load(Ordering::Relaxed) == request)
        );
    }
    handle.join();
}

#[test]
fn an_idle_task_runs_again_at_its_deadline() {
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
    assert!(!spawner.wait_until(
        &Signal::new(WaitKind::Idle, "test"),
        Some(deadline_ns),
        &mut || false
    ));
    assert!(clock.monotonic_ns() >= deadline_ns);
}

#[test]
fn a_panic_of_a_task_reaches_joiners_and_waiters() {
    let (spawner, _) = spawner();
    let handle = spawner.spawn(Arc::new(TestTask(|| panic!("expected by the test"))));
    let wait = || spawner.wait_until(&Signal::new(WaitKind::Idle, "test"), None, &mut || false);
    assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
    let panic = catch_unwind(AssertUnwindSafe(|| handle.join())).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"expected by the test"));
    assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
    assert!(
        spawner.wait_until(&Signal::new(WaitKind::Idle, "test"), None, &mut || true),
        "a ready wait needs no task"
    );
}
