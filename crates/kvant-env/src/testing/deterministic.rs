//! Tasks without threads: one step at a time, chosen by a seed, on the caller's thread.
//!
//! The mock clock moves only if no task is runnable, to the nearest deadline of a waiter or an idle
//! task. A run is therefore a function of the seed and the caller's actions, and a failing seed
//! replays.
//!
//! Invariants:
//! 1. A task never runs while one of its steps is on the stack. A step that waits runs the others.
//! 2. No lock is held while a task runs or a waiter calls `ready`.
//! 3. A wait never hangs: it returns, or panics with the state of every task.
//!
//! Threads: meant for one. A task that runs on another thread is not runnable.

use super::MockClock;
use crate::clock::Clock;
use crate::rng::Rng;
use crate::spawner::{Signal, Spawner, Step, Task, TaskHandle};
use kvant_base::lock::NamedMutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// More steps than any wait needs. Beyond it, tasks are assumed to keep each other busy forever.
const STEPS_PER_WAIT_MAX: u64 = 1_000_000;

/// Runs tasks step by step. Clones share the same tasks.
#[derive(Clone)]
pub struct DeterministicSpawner {
    clock: Arc<MockClock>,
    state: Arc<NamedMutex<State>>,
    give_way_count: Arc<AtomicU64>,
}

struct State {
    rng: Rng,
    /// A task's index never changes. Finished tasks leave empty slots.
    slots: Vec<Slot>,
}

struct Slot {
    name: String,
    /// `None` once the task has finished.
    task: Option<Arc<dyn Task>>,
    state: TaskState,
    /// Woken since its last step began.
    woken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Runnable,
    Idle,
    IdleUntil(u64),
    /// One of its steps is on the stack.
    Running,
    Finished,
    Panicked,
}

impl DeterministicSpawner {
    /// A spawner whose seed chooses the steps and whose deadlines are times of `clock`.
    pub fn new(seed: u64, clock: Arc<MockClock>) -> DeterministicSpawner {
        let state = State { rng: Rng::new(seed), slots: Vec::new() };
        DeterministicSpawner {
            clock,
            state: Arc::new(NamedMutex::new("deterministic_spawner", state)),
            give_way_count: Arc::default(),
        }
    }

    /// How many times tasks have given way.
    pub fn give_way_count(&self) -> u64 {
        self.give_way_count.load(Ordering::Relaxed)
    }

    /// Runs one step of a runnable task chosen by the seed. Returns false if there is none.
    pub fn step(&self) -> bool {
        let Some((index, task)) = self.state.lock().begin_step(self.clock.monotonic_ns()) else {
            return false;
        };
        let mut end = EndStep { spawner: self, index, state: TaskState::Panicked };
        end.state = match task.step() {
            Step::Worked => TaskState::Runnable,
            Step::Idle => TaskState::Idle,
            Step::IdleUntil(deadline_ns) => TaskState::IdleUntil(deadline_ns),
            Step::Finished => TaskState::Finished,
        };
        true
    }

    /// Runs steps until no task is runnable. The clock does not move.
    ///
    /// # Panics
    /// If the tasks never become idle.
    pub fn run_until_idle(&self) {
        let mut step_count = 0;
        while self.step() {
            step_count += 1;
            self.check_step_count(step_count);
        }
    }

    /// Drops all tasks without another step, as a machine crash does. They count as finished.
    pub fn abandon_tasks(&self) {
        let mut abandoned = Vec::new();
        for slot in &mut self.state.lock().slots {
            abandoned.extend(slot.task.take());
            slot.state = TaskState::Finished;
        }
    }

    /// Runs steps, and advances the clock if no task is runnable, until `ready` or the deadline.
    fn drive(&self, deadline_ns: Option<u64>, ready: &mut dyn FnMut() -> bool) -> bool {
        let mut step_count = 0;
        loop {
            if ready() {
                return true;
            }
            if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= self.clock.monotonic_ns()) {
                return false;
            }
            step_count += 1;
            self.check_step_count(step_count);
            if self.step() {
                continue;
            }
            let next_task_ns = self.state.lock().next_deadline_ns();
            match next_task_ns.into_iter().chain(deadline_ns).min() {
                Some(next_ns) => self.clock.advance_to(next_ns),
                // A second panic while one unwinds would abort and hide the first.
                None if thread::panicking() => return false,
                None => panic!(
                    "deadlock: waiting with no runnable task; tasks: {}",
                    self.describe_tasks()
                ),
            }
        }
    }

    fn check_step_count(&self, step_count: u64) {
        if step_count > STEPS_PER_WAIT_MAX && !thread::panicking() {
            panic!(
                "livelock: {STEPS_PER_WAIT_MAX} steps led nowhere; tasks: {}",
                self.describe_tasks()
            );
        }
    }

    fn describe_tasks(&self) -> String {
        let state = self.state.lock();
        let tasks = state.slots.iter().map(|slot| format!("{} {:?}", slot.name, slot.state));
        tasks.collect::<Vec<_>>().join(", ")
    }
}

impl State {
    /// Chooses a runnable task and marks it as running.
    fn begin_step(&mut self, now_ns: u64) -> Option<(usize, Arc<dyn Task>)> {
        let can_run = |slot: &Slot| match slot.state {
            TaskState::Runnable => true,
            TaskState::IdleUntil(deadline_ns) => deadline_ns <= now_ns,
            _ => false,
        };
        let candidates = self.slots.iter().enumerate().filter(|(_, slot)| can_run(slot));
        let candidates: Vec<usize> = candidates.map(|(index, _)| index).collect();
        if candidates.is_empty() {
            return None;
        }
        let index = candidates[self.rng.below(candidates.len() as u64) as usize];
        let slot = &mut self.slots[index];
        slot.state = TaskState::Running;
        slot.woken = false;
        let task = slot.task.as_ref().expect("a runnable task has not finished");
        Some((index, Arc::clone(task)))
    }

    /// The earliest deadline of an idle task.
    fn next_deadline_ns(&self) -> Option<u64> {
        let deadlines = self.slots.iter().filter_map(|slot| match slot.state {
            TaskState::IdleUntil(deadline_ns) => Some(deadline_ns),
            _ => None,
        });
        deadlines.min()
    }
}

/// Records the result of a step when dropped, even if the step panics.
struct EndStep<'a> {
    spawner: &'a DeterministicSpawner,
    index: usize,
    state: TaskState,
}

impl Drop for EndStep<'_> {
    fn drop(&mut self) {
        let mut state = self.spawner.state.lock();
        let slot = &mut state.slots[self.index];
        if slot.state != TaskState::Running {
            // Abandoned during the step.
            return;
        }
        slot.state = match self.state {
            TaskState::Idle | TaskState::IdleUntil(_) if slot.woken => TaskState::Runnable,
            state => state,
        };
        if matches!(slot.state, TaskState::Finished | TaskState::Panicked) {
            let task = slot.task.take();
            // Dropping a task runs its code, so no lock may be held.
            drop(state);
            drop(task);
        }
    }
}

impl Spawner for DeterministicSpawner {
    fn spawn(&self, task: Arc<dyn Task>) -> Arc<dyn TaskHandle> {
        let name = task.name().to_owned();
        let slot = Slot { name, task: Some(task), state: TaskState::Runnable, woken: false };
        let mut state = self.state.lock();
        state.slots.push(slot);
        let index = state.slots.len() - 1;
        drop(state);
        Arc::new(SteppedHandle { spawner: self.clone(), index })
    }

    /// Runs tasks until `ready`, which is checked after every step. The signal is not used.
    ///
    /// # Panics
    /// If no task is runnable and there is no deadline of a waiter or an idle task.
    fn wait_until(
        &self,
        _signal: &Signal,
        deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool {
        self.drive(deadline_ns, ready)
    }

    /// Only counted: a step runs to its end.
    fn give_way(&self) {
        self.give_way_count.fetch_add(1, Ordering::Relaxed);
    }
}

struct SteppedHandle {
    spawner: DeterministicSpawner,
    index: usize,
}

impl SteppedHandle {
    fn state(&self) -> TaskState {
        self.spawner.state.lock().slots[self.index].state
    }
}

impl TaskHandle for SteppedHandle {
    fn wake(&self) {
        let mut state = self.spawner.state.lock();
        let slot = &mut state.slots[self.index];
        slot.woken = true;
        if matches!(slot.state, TaskState::Idle | TaskState::IdleUntil(_)) {
            slot.state = TaskState::Runnable;
        }
    }

    fn join(&self) {
        self.spawner
            .drive(None, &mut || matches!(self.state(), TaskState::Finished | TaskState::Panicked));
        if self.state() == TaskState::Panicked && !thread::panicking() {
            panic!("a background task panicked earlier; tasks: {}", self.spawner.describe_tasks());
        }
    }
}

#[cfg(test)]
mod tests;
