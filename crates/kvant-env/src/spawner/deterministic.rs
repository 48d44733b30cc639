//! Tasks without threads: one step at a time, chosen by a seed, on the caller's thread.
//!
//! Time is a mock clock that moves only when nothing else can happen: then to the nearest deadline
//! of a waiter or of an idle task. A run is therefore a function of the seed and of what the caller
//! does, and a failing seed replays.
//!
//! Invariants:
//! 1. A task is never stepped while one of its steps is still on the stack: a step that waits steps
//!    the others.
//! 2. No lock is held while a task steps or a waiter's `ready` looks.
//! 3. A wait ends, in its result or in a panic that says what every task was doing: there is no
//!    sleep to hang in.
//!
//! Threads: meant for one. A task that another thread is just stepping counts as one that cannot
//! run.

use super::{Signal, Spawner, Step, Task, TaskHandle};
use crate::clock::{Clock, MockClock};
use crate::rng::Rng;
use kvant_base::lock::NamedMutex;
use std::sync::Arc;
use std::thread;

/// More steps than any wait needs: beyond it, tasks are taken to keep each other busy for ever.
const STEPS_PER_WAIT_MAX: u64 = 1_000_000;

/// Runs tasks step by step. Clones drive the same tasks.
#[derive(Clone)]
pub struct DeterministicSpawner {
    clock: Arc<MockClock>,
    state: Arc<NamedMutex<State>>,
}

struct State {
    rng: Rng,
    /// A task's index never changes; tasks that are over stay as empty slots.
    slots: Vec<Slot>,
}

struct Slot {
    name: String,
    /// `None` once the task is over.
    task: Option<Arc<dyn Task>>,
    phase: Phase,
    /// Woken since its last step began.
    woken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Runnable,
    Idle,
    IdleUntil(u64),
    /// One of its steps is on the stack.
    Stepping,
    Finished,
    Panicked,
}

impl DeterministicSpawner {
    /// A spawner that chooses by `seed` and whose deadlines are times of `clock`.
    pub fn new(seed: u64, clock: Arc<MockClock>) -> DeterministicSpawner {
        let state = State { rng: Rng::new(seed), slots: Vec::new() };
        DeterministicSpawner {
            clock,
            state: Arc::new(NamedMutex::new("deterministic_spawner", state)),
        }
    }

    /// Takes one step of one task that can run, chosen by the seed. False if none can.
    pub fn step(&self) -> bool {
        let Some((index, task)) = self.state.lock().begin_step(self.clock.monotonic_ns()) else {
            return false;
        };
        let mut end = EndStep { spawner: self, index, phase: Phase::Panicked };
        end.phase = match task.step() {
            Step::Worked => Phase::Runnable,
            Step::Idle => Phase::Idle,
            Step::IdleUntil(deadline_ns) => Phase::IdleUntil(deadline_ns),
            Step::Finished => Phase::Finished,
        };
        true
    }

    /// Takes steps until no task can run at the present time of the clock, which does not move.
    ///
    /// # Panics
    /// If the tasks never come to rest.
    pub fn run_until_idle(&self) {
        let mut step_count = 0;
        while self.step() {
            step_count += 1;
            self.check_step_count(step_count);
        }
    }

    /// Forgets all tasks, as a crash of the machine does: they are dropped without another step,
    /// and count as finished.
    pub fn abandon_tasks(&self) {
        let mut abandoned = Vec::new();
        for slot in &mut self.state.lock().slots {
            abandoned.extend(slot.task.take());
            slot.phase = Phase::Finished;
        }
    }

    /// Takes steps, and moves the clock when there is none to take, until `ready` or the deadline.
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
        let tasks = state.slots.iter().map(|slot| format!("{} {:?}", slot.name, slot.phase));
        tasks.collect::<Vec<_>>().join(", ")
    }
}

impl State {
    /// Chooses a task that can run and marks it as stepping.
    fn begin_step(&mut self, now_ns: u64) -> Option<(usize, Arc<dyn Task>)> {
        let can_run = |slot: &Slot| match slot.phase {
            Phase::Runnable => true,
            Phase::IdleUntil(deadline_ns) => deadline_ns <= now_ns,
            _ => false,
        };
        let candidates = self.slots.iter().enumerate().filter(|(_, slot)| can_run(slot));
        let candidates: Vec<usize> = candidates.map(|(index, _)| index).collect();
        if candidates.is_empty() {
            return None;
        }
        let index = candidates[self.rng.below(candidates.len() as u64) as usize];
        let slot = &mut self.slots[index];
        slot.phase = Phase::Stepping;
        slot.woken = false;
        let task = slot.task.as_ref().expect("a task that can run is not over");
        Some((index, Arc::clone(task)))
    }

    /// When the first idle task becomes runnable by itself.
    fn next_deadline_ns(&self) -> Option<u64> {
        let deadlines = self.slots.iter().filter_map(|slot| match slot.phase {
            Phase::IdleUntil(deadline_ns) => Some(deadline_ns),
            _ => None,
        });
        deadlines.min()
    }
}

/// Records the outcome of a step when dropped: also when the step panics.
struct EndStep<'a> {
    spawner: &'a DeterministicSpawner,
    index: usize,
    phase: Phase,
}

impl Drop for EndStep<'_> {
    fn drop(&mut self) {
        let mut state = self.spawner.state.lock();
        let slot = &mut state.slots[self.index];
        if slot.phase != Phase::Stepping {
            // Abandoned meanwhile.
            return;
        }
        slot.phase = match self.phase {
            Phase::Idle | Phase::IdleUntil(_) if slot.woken => Phase::Runnable,
            phase => phase,
        };
        if matches!(slot.phase, Phase::Finished | Phase::Panicked) {
            let task = slot.task.take();
            // The last owner of a task may do anything when it drops it.
            drop(state);
            drop(task);
        }
    }
}

impl Spawner for DeterministicSpawner {
    fn spawn(&self, task: Arc<dyn Task>) -> Arc<dyn TaskHandle> {
        let name = task.name().to_owned();
        let slot = Slot { name, task: Some(task), phase: Phase::Runnable, woken: false };
        let mut state = self.state.lock();
        state.slots.push(slot);
        let index = state.slots.len() - 1;
        drop(state);
        Arc::new(SteppedHandle { spawner: self.clone(), index })
    }

    /// Steps tasks until `ready`. The signal is not used: `ready` looks after every step.
    ///
    /// # Panics
    /// If no task can run and neither a deadline nor an idle task's time lies ahead.
    fn wait_until(
        &self,
        _signal: &Signal,
        deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool {
        self.drive(deadline_ns, ready)
    }
}

struct SteppedHandle {
    spawner: DeterministicSpawner,
    index: usize,
}

impl SteppedHandle {
    fn phase(&self) -> Phase {
        self.spawner.state.lock().slots[self.index].phase
    }
}

impl TaskHandle for SteppedHandle {
    fn wake(&self) {
        let mut state = self.spawner.state.lock();
        let slot = &mut state.slots[self.index];
        slot.woken = true;
        if matches!(slot.phase, Phase::Idle | Phase::IdleUntil(_)) {
            slot.phase = Phase::Runnable;
        }
    }

    fn join(&self) {
        self.spawner.drive(None, &mut || matches!(self.phase(), Phase::Finished | Phase::Panicked));
        if self.phase() == Phase::Panicked && !thread::panicking() {
            panic!("a background task panicked earlier; tasks: {}", self.spawner.describe_tasks());
        }
    }
}

#[cfg(test)]
mod tests;
