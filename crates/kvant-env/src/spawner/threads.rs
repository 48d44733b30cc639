//! One operating-system thread per task. Threads of background tasks have a lower priority.
//!
//! Invariants:
//! 1. `woken` is cleared before a step, never after it, so that a step after a wake sees every
//!    change before the wake.
//! 2. No panic in a step is lost. Where panics unwind (in tests), `join` resumes the panic, and
//!    waits panic instead of sleeping, because their condition may never become true.
//!
//! Threads: handles may be used from any thread; a task runs only on its own.

use super::signal::remaining;
use super::{Signal, Spawner, Step, Task, TaskHandle};
use crate::clock::Clock;
use kvant_base::lock::{self, NamedMutex};
use kvant_base::tag;
use kvant_base::wait::WaitKind;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::sched_yield;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};

/// Niceness of background tasks, added to the process's. With 10, a thread gets about a tenth of a
/// CPU that a normal thread competes for, and all of an otherwise idle CPU.
const BACKGROUND_NICENESS: i32 = 10;
/// The highest niceness of Linux.
const NICENESS_MAX: i32 = 19;

/// Runs each task on its own thread.
pub struct ThreadSpawner {
    clock: Arc<dyn Clock>,
    task_panicked: Arc<AtomicBool>,
}

impl ThreadSpawner {
    /// A spawner whose deadlines are times of `clock`. Sleepers sleep in real time and check
    /// `clock` afterwards, so advancing a mock clock wakes no thread.
    pub fn new(clock: Arc<dyn Clock>) -> ThreadSpawner {
        ThreadSpawner { clock, task_panicked: Arc::new(AtomicBool::new(false)) }
    }
}

impl Spawner for ThreadSpawner {
    fn spawn(&self, task: Arc<dyn Task>) -> Arc<dyn TaskHandle> {
        let name = task.name().to_owned();
        debug_assert!(name.len() <= 15, "thread name {name} is longer than 15 bytes");
        let woken = Arc::new(AtomicBool::new(false));
        let runner = Runner {
            task,
            woken: Arc::clone(&woken),
            clock: Arc::clone(&self.clock),
            task_panicked: Arc::clone(&self.task_panicked),
        };
        let joiner = thread::Builder::new()
            .name(name.clone())
            .spawn(move || runner.run())
            .unwrap_or_else(|error| panic!("cannot start thread {name}: {error}"));
        let thread = joiner.thread().clone();
        Arc::new(ThreadHandle {
            woken,
            thread,
            joiner: NamedMutex::new("task_joiner", Some(joiner)),
        })
    }

    fn wait_until(
        &self,
        signal: &Signal,
        deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool {
        let task_panicked = || self.task_panicked.load(Ordering::Acquire);
        let is_ready = signal.wait_until(&*self.clock, deadline_ns, ready, &task_panicked);
        // A second panic while one unwinds would abort and hide the first.
        if !is_ready && task_panicked() && !thread::panicking() {
            panic!("a background task panicked: the state this waits for may never come");
        }
        is_ready
    }

    fn give_way(&self) {
        let _resting = tag::rest();
        sched_yield();
    }
}

/// The state of a task's thread.
struct Runner {
    task: Arc<dyn Task>,
    woken: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
    task_panicked: Arc<AtomicBool>,
}

impl Runner {
    fn run(&self) {
        if self.task.is_background() {
            lower_priority();
        }
        loop {
            self.woken.swap(false, Ordering::Acquire);
            match self.task.step() {
                Step::Worked => {}
                Step::Idle => self.sleep_until(None),
                Step::IdleUntil(deadline_ns) => self.sleep_until(Some(deadline_ns)),
                Step::Finished => return,
            }
        }
    }

    /// Sleeps until woken or until the deadline. A step may consume a park token, so only `woken`
    /// counts.
    fn sleep_until(&self, deadline_ns: Option<u64>) {
        while !self.woken.load(Ordering::Acquire) {
            let time_max = remaining(&*self.clock, deadline_ns);
            if time_max.is_some_and(|time| time.is_zero()) {
                return;
            }
            lock::park(WaitKind::Idle, self.task.idle_name(), time_max);
        }
    }
}

/// Lowers the priority of the calling thread: Linux applies these calls to a thread, not to its
/// process.
fn lower_priority() {
    let niceness =
        getpriority_process(None).map(|now| (now + BACKGROUND_NICENESS).min(NICENESS_MAX));
    match niceness.and_then(|niceness| setpriority_process(None, niceness)) {
        Ok(()) => {}
        // Only a sandbox rejects this call. The task then runs at normal priority.
        Err(_refused) => {}
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if thread::panicking() {
            self.task_panicked.store(true, Ordering::Release);
        }
    }
}

struct ThreadHandle {
    woken: Arc<AtomicBool>,
    thread: Thread,
    /// Locked while joining, so that a second caller of `join` also waits.
    joiner: NamedMutex<Option<JoinHandle<()>>>,
}

impl TaskHandle for ThreadHandle {
    fn wake(&self) {
        // Swap even if the flag is set: the step that clears it must see this caller's changes.
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }

    fn join(&self) {
        let mut joiner = self.joiner.lock();
        let outcome = joiner.take().map_or(Ok(()), JoinHandle::join);
        drop(joiner);
        if let Err(panic) = outcome
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests;
