//! Background tasks as steps.
//!
//! A [`Task`] does one bounded piece of work per call and reports whether there is more.
//! [`ThreadSpawner`] gives each task a thread that sleeps while the task is idle.
//! `DeterministicSpawner` (in `testing`) has no threads: a test, or a waiting operation, runs one
//! step of one task at a time, chosen by a seed, so that a run replays exactly.
//!
//! Waiting also goes through the spawner: [`Spawner::wait_until`] sleeps on a [`Signal`] with
//! threads and runs steps without. Code that changes the state behind a waiter's `ready` must call
//! [`Signal::notify_all`] afterwards.

use std::sync::Arc;

mod signal;
mod threads;

pub use signal::Signal;
pub use threads::ThreadSpawner;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Some work was done, and there may be more.
    Worked,
    /// No work until [`TaskHandle::wake`].
    Idle,
    /// No work until [`TaskHandle::wake`] or until the monotonic clock reaches this many
    /// nanoseconds.
    IdleUntil(u64),
    /// The task has finished and is not called again.
    Finished,
}

/// Background work in steps. Never called by two threads at once.
pub trait Task: Send + Sync {
    /// The thread's name, of at most 15 bytes.
    fn name(&self) -> &str;
    /// The name of its idle time in profiles.
    fn idle_name(&self) -> &'static str {
        "task"
    }
    /// Does one bounded piece of work.
    fn step(&self) -> Step;
    /// Whether its thread runs at a lower priority than threads that serve requests. Only for work
    /// that no request waits for.
    fn is_background(&self) -> bool {
        false
    }
}

/// The owner's handle of a spawned task.
pub trait TaskHandle: Send + Sync {
    /// Makes an idle task run again. After a wake during a step the task runs another step.
    fn wake(&self);
    /// Waits until the task has returned [`Step::Finished`]. The owner must first request this from
    /// the task and wake it.
    fn join(&self);
}

/// Starts tasks and waits for them.
pub trait Spawner: Send + Sync {
    /// Starts a task.
    ///
    /// # Panics
    /// If the operating system refuses to create a thread.
    fn spawn(&self, task: Arc<dyn Task>) -> Arc<dyn TaskHandle>;
    /// Waits until `ready` returns true (returns true) or until the monotonic clock reaches
    /// `deadline_ns` (returns false). `ready` is called again after every notification of `signal`.
    /// It must be fast and must not block.
    ///
    /// # Panics
    /// If `ready` is still false and a task has panicked, in builds where panics unwind.
    fn wait_until(
        &self,
        signal: &Signal,
        deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool;
    /// Lets what else is due on the CPU of the calling thread run first. Costs under a microsecond
    /// when nothing is.
    fn give_way(&self);
}
