//! One operating-system thread per task; those of background tasks give way to all others.
//!
//! Invariants:
//! 1. `woken` is cleared before a step, never after it: whatever was changed before a wake is seen
//!    by a step that follows.
//! 2. A panic in a step is not silent. Where panics abort there is nothing to do; where they unwind
//!    (tests), `join` passes the panic on, and waits that would sleep panic as well, since what
//!    they wait for may never come.
//!
//! Threads: handles may be used from any thread; a task is only ever stepped by its own.

use super::signal::remaining;
use super::{Signal, Spawner, Step, Task, TaskHandle};
use crate::clock::Clock;
use kvant_base::lock::{self, NamedMutex};
use kvant_base::wait::WaitKind;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};

/// How much nicer than others the threads of background tasks are. With 10, such a thread gets
/// about a tenth of a processor that another thread wants as well, and all of one that nobody else
/// wants.
const BACKGROUND_NICENESS: i32 = 10;
/// The nicest there is.
const NICENESS_MAX: i32 = 19;

/// Runs every task on a thread of its own. Waits sleep.
pub struct ThreadSpawner {
    clock: Arc<dyn Clock>,
    task_panicked: Arc<AtomicBool>,
}

impl ThreadSpawner {
    /// A spawner whose deadlines are times of `clock`. Sleepers wake by themselves when real time
    /// has passed and look at `clock` only then: a mock clock that is moved by hand wakes nobody.
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
            panic!("a background task panicked: what this wait is for may never come");
        }
        is_ready
    }
}

/// What a task's thread owns.
struct Runner {
    task: Arc<dyn Task>,
    woken: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
    task_panicked: Arc<AtomicBool>,
}

impl Runner {
    fn run(&self) {
        if self.task.is_background() {
            give_way();
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

    /// Returns when woken or when the deadline is reached. A park token that a step has used up
    /// itself does no harm: `woken` decides.
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

/// Lowers the priority of the calling thread: Linux takes the process number 0 for the calling
/// thread alone. Elsewhere it would be the whole process, which is to be left as it is.
#[cfg(target_os = "linux")]
fn give_way() {
    use rustix::process::{getpriority_process, setpriority_process};

    let niceness =
        getpriority_process(None).map(|now| (now + BACKGROUND_NICENESS).min(NICENESS_MAX));
    match niceness.and_then(|niceness| setpriority_process(None, niceness)) {
        Ok(()) => {}
        // Any thread may become nicer: only a sandbox refuses the call. Then the work is done at
        // the common priority.
        Err(_refused) => {}
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

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
    /// Held while joining, so that a second caller of `join` waits as well.
    joiner: NamedMutex<Option<JoinHandle<()>>>,
}

impl TaskHandle for ThreadHandle {
    fn wake(&self) {
        // A swap even when the flag is set already: the step that clears it must see what this
        // caller did before.
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
