use super::*;
use crate::testing::entropy_seed;
use kvant_base::wait::WaitKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

type StepFn = Box<dyn Fn() -> Step + Send + Sync>;

struct TestTask {
    name: &'static str,
    step: StepFn,
}

impl Task for TestTask {
    fn name(&self) -> &str {
        self.name
    }

    fn step(&self) -> Step {
        (self.step)()
    }
}

fn task(name: &'static str, step: impl Fn() -> Step + Send + Sync + 'static) -> Arc<dyn Task> {
    Arc::new(TestTask { name, step: Box::new(step) })
}

fn spawner(seed: u64) -> (DeterministicSpawner, Arc<MockClock>) {
    let clock = Arc::new(MockClock::new(0));
    (DeterministicSpawner::new(seed, Arc::clone(&clock)), clock)
}

/// A counter, and a task that counts to `bound` and finishes.
fn counter(name: &'static str, bound: u64) -> (Arc<AtomicU64>, Arc<dyn Task>) {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let step = move || match counted.fetch_add(1, Ordering::Relaxed) + 1 {
        now if now == bound => Step::Finished,
        _ => Step::Worked,
    };
    (count, task(name, step))
}

fn panic_message(work: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("must panic");
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
    }
}

/// The order in which three tasks run their steps.
fn interleaving(seed: u64) -> String {
    let (spawner, _) = spawner(seed);
    let order = Arc::new(Mutex::new(String::new()));
    for name in ["a", "b", "c"] {
        let (order, steps) = (Arc::clone(&order), AtomicU64::new(0));
        spawner.spawn(task(name, move || {
            order.lock().unwrap().push_str(name);
            if steps.fetch_add(1, Ordering::Relaxed) == 9 { Step::Finished } else { Step::Worked }
        }));
    }
    spawner.run_until_idle();
    let order = order.lock().unwrap();
    order.clone()
}

#[test]
fn a_seed_replays_and_seeds_differ() {
    let seed = entropy_seed();
    eprintln!("seed {seed}");
    assert_eq!(interleaving(seed), interleaving(seed));
    assert_eq!(interleaving(seed).len(), 30);
    assert_ne!(interleaving(1), interleaving(2));
}

#[test]
fn nothing_runs_before_the_first_step() {
    let (spawner, _) = spawner(0);
    let (count, task) = counter("counter", 3);
    spawner.spawn(task);
    assert_eq!(count.load(Ordering::Relaxed), 0);
    assert!(spawner.step());
    assert_eq!(count.load(Ordering::Relaxed), 1);
    spawner.run_until_idle();
    assert_eq!(count.load(Ordering::Relaxed), 3);
    assert!(!spawner.step());
    assert_eq!(Arc::strong_count(&count), 1, "a finished task is dropped");
}

#[test]
fn a_wait_runs_tasks_until_ready_and_no_further() {
    let (spawner, _) = spawner(0);
    let (count, task) = counter("counter", 10);
    let handle = spawner.spawn(task);
    assert!(spawner.wait_until(&Signal::new(WaitKind::Idle, "test"), None, &mut || {
        count.load(Ordering::Relaxed) == 4
    }));
    assert_eq!(count.load(Ordering::Relaxed), 4);
    handle.join();
    assert_eq!(count.load(Ordering::Relaxed), 10);
}

#[test]
fn an_idle_task_runs_when_woken_even_by_itself() {
    let (spawner, _) = spawner(0);
    let steps = Arc::new(AtomicU64::new(0));
    let own_handle = Arc::new(Mutex::new(None::<Arc<dyn TaskHandle>>));
    let handle = spawner.spawn(task("sleeper", {
        let (steps, own_handle) = (Arc::clone(&steps), Arc::clone(&own_handle));
        move || {
            if steps.fetch_add(1, Ordering::Relaxed) == 2 {
                own_handle.lock().unwrap().as_ref().unwrap().wake();
            }
            Step::Idle
        }
    }));
    *own_handle.lock().unwrap() = Some(Arc::clone(&handle));
    spawner.run_until_idle();
    assert_eq!(steps.load(Ordering::Relaxed), 1);
    handle.wake();
    handle.wake();
    spawner.run_until_idle();
    assert_eq!(steps.load(Ordering::Relaxed), 2, "two wakes of an idle task cause one step");
    handle.wake();
    spawner.run_until_idle();
    assert_eq!(steps.load(Ordering::Relaxed), 4, "a wake during a step causes another step");
}

#[test]
fn time_advances_to_the_nearest_deadline_when_no_task_is_runnable() {
    let (spawner, clock) = spawner(0);
    for (name, deadline_ns) in [("early", 30), ("late", 70)] {
        let clock = Arc::clone(&clock);
        spawner.spawn(task(name, move || match clock.monotonic_ns() {
            now_ns if now_ns < deadline_ns => Step::IdleUntil(deadline_ns),
            _ => Step::Finished,
        }));
    }
    spawner.run_until_idle();
    assert_eq!(clock.monotonic_ns(), 0);
    assert!(!spawner.wait_until(&Signal::new(WaitKind::Idle, "test"), Some(20), &mut || false));
    assert_eq!(clock.monotonic_ns(), 20);
    let mut times = Vec::new();
    let mut ready = || {
        times.push(clock.monotonic_ns());
        false
    };
    assert!(!spawner.wait_until(&Signal::new(WaitKind::Idle, "test"), Some(100), &mut ready));
    times.dedup();
    assert_eq!(times, [20, 30, 70, 100]);
}

#[test]
fn a_waiting_step_runs_the_other_tasks_and_never_itself() {
    let (spawner, _) = spawner(entropy_seed());
    let (count, helper) = counter("helper", 5);
    let depth = Arc::new(AtomicU64::new(0));
    let waiting = task("waiting", {
        let (spawner, count, depth) = (spawner.clone(), Arc::clone(&count), Arc::clone(&depth));
        move || {
            assert_eq!(depth.fetch_add(1, Ordering::Relaxed), 0, "run within its own step");
            assert!(spawner.wait_until(&Signal::new(WaitKind::Idle, "test"), None, &mut || {
                count.load(Ordering::Relaxed) == 5
            }));
            depth.fetch_sub(1, Ordering::Relaxed);
            Step::Finished
        }
    });
    let waiting = spawner.spawn(waiting);
    spawner.spawn(helper);
    waiting.join();
    assert_eq!(count.load(Ordering::Relaxed), 5);
}

#[test]
fn a_deadlock_panics_with_the_state_of_every_task() {
    let (spawner, _) = spawner(0);
    let handle = spawner.spawn(task("sleeper", || Step::Idle));
    let message = panic_message(|| {
        assert!(spawner.wait_until(&Signal::new(WaitKind::Idle, "test"), None, &mut || false))
    });
    assert!(message.starts_with("deadlock: waiting with no runnable task"), "{message}");
    assert!(message.contains("sleeper Idle"), "{message}");
    assert!(panic_message(|| handle.join()).starts_with("deadlock"));
}

#[test]
fn tasks_that_are_never_idle_panic() {
    let (spawner, _) = spawner(0);
    spawner.spawn(task("busy", || Step::Worked));
    assert!(panic_message(|| spawner.run_until_idle()).starts_with("livelock"));
}

#[test]
fn a_panic_in_a_step_reaches_its_caller_and_later_joiners() {
    let (spawner, _) = spawner(0);
    let handle = spawner.spawn(task("broken", || panic!("expected by the test")));
    assert_eq!(panic_message(|| assert!(spawner.step())), "expected by the test");
    assert!(!spawner.step());
    let message = panic_message(|| handle.join());
    assert!(message.contains("broken Panicked"), "{message}");
}

#[test]
fn abandoned_tasks_are_dropped_and_count_as_finished() {
    let (spawner, _) = spawner(0);
    let (count, task) = counter("counter", 10);
    let handle = spawner.spawn(task);
    spawner.step();
    spawner.abandon_tasks();
    assert_eq!(Arc::strong_count(&count), 1);
    assert!(!spawner.step());
    handle.wake();
    handle.join();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}
