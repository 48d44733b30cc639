//! Background work as steps.
//!
//! A [`Task`] does one bounded piece of work a call and says whether there is more.
//! [`ThreadSpawner`] gives each task a thread that sleeps while the task is idle;
//! [`DeterministicSpawner`] has no threads: a test (or a waiting foreground operation) takes one
//! step of one task at a time, chosen by a seed, so that a run replays exactly.
//!
//! Waiting goes through the spawner too: [`Spawner::wait_until`] sleeps on a [`Signal`] with
//! threads, and takes steps without. A state change that a waiter's `ready` looks at must be
//! followed by [`Signal::notify_all`].

use std::sync::Arc;

mod deterministic;
mod signal;
mod threads;

pub use deterministic::DeterministicSpawner;
pub use signal::Signal;
pub use threads::ThreadSpawner;

/// What a step of a task did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Some work; there may be more: call again.
    Worked,
    /// Nothing to do until [`TaskHandle::wake`].
    Idle,
    /// Nothing to do until [`TaskHandle::wake`] or until the monotonic clock reaches this many
    /// nanoseconds.
    IdleUntil(u64),
    /// The task is over; it is never called again.
    Finished,
}

/// A piece of background work that is done step by step. Never called by two threads at once.
pub trait Task: Send + Sync {
    /// Name of the thread, of at most 15 bytes.
    fn name(&self) -> &str;
    /// What profiles call the time in which it has nothing to do.
    fn idle_name(&self) -> &'static str {
        "task"
    }
    /// Does one bounded piece of work.
    fn step(&self) -> Step;
    /// Whether it gives way to threads that serve requests: for work that is never what a request
    /// waits for.
    fn is_background(&self) -> bool {
        false
    }
}

/// A spawned task as its owner holds it.
pub trait TaskHandle: Send + Sync {
    /// Makes an idle task step again soon. A wake during a step is not lost: the task steps once
    /// more.
    fn wake(&self);
    /// Waits until the task has returned [`Step::Finished`]. The owner must have told it to finish
    /// and woken it.
    fn join(&self);
}

/// Starts tasks and waits for them.
pub trait Spawner: Send + Sync {
    /// Starts a task, which steps at once.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    fn spawn(&self, task: Arc<dyn Task>) -> Arc<dyn TaskHandle>;
    /// Waits until `ready` returns true (result true), or until the monotonic clock reaches
    /// `deadline_ns` (result false). `ready` is called again after every notification of `signal`;
    /// it must be cheap, and must not wait itself.
    ///
    /// # Panics
    /// If a task has panicked, in builds where that does not end the process, and `ready` is still
    /// false.
    fn wait_until(
        &self,
        signal: &Signal,
        deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool;
}
