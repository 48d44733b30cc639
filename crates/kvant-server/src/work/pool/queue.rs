//! The queue of the pool: admits jobs, orders them, and gives up those that waited for too long.
//!
//! Invariants:
//! 1. Every job that is offered leaves once: taken by a worker, or removed with a reason.
//! 2. Jobs of a class are taken in the order in which they were offered.
//! 3. The queue holds at most as many requests as its capacity, or a single job. (A batch of writes
//!    may be longer than the capacity.)
//! 4. With two workers or more, one of them is never at work on a range.
//!
//! Pure: no clock, no threads; every call says what time it is.

use super::work::{Ticket, Work};
use crate::admission::{Class, Control, Refusal};
use crate::config::{Overload, ServerConfig};
use kvant_base::duration;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most jobs that a worker takes at once,
const TAKEN_COUNT_MAX: usize = 16;
/// and the longest that it should take to do them: their replies are delivered together.
const TAKEN_NS_MAX: u64 = 500_000;

pub(super) struct Job {
    pub(super) work: Work,
    pub(super) class: Class,
    pub(super) request_count: usize,
    pub(super) ticket: Ticket,
    pub(super) queued_ns: u64,
    /// It goes on with a response that has begun: it is always admitted, and waits without limit.
    is_begun: bool,
}

impl Job {
    pub(super) fn new(work: Work, ticket: Ticket, queued_ns: u64) -> Job {
        Job {
            class: work.class(),
            request_count: work.request_count(),
            is_begun: work.is_begun(),
            work,
            ticket,
            queued_ns,
        }
    }

    fn waited_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.queued_ns)
    }
}

/// A job that no worker will do.
pub(super) struct RemovedJob {
    pub(super) job: Job,
    /// `None`: the selector does it itself.
    pub(super) refusal: Option<Refusal>,
}

/// The jobs, all of one class, that a worker has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinishedJobs {
    pub(super) class: Class,
    pub(super) request_count: usize,
    pub(super) worked_ns: u64,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    request_count: usize,
    done_count: u64,
    /// Workers at work on it, and the most that may be.
    worker_count: usize,
    worker_count_max: usize,
    /// Requests of all classes together beyond which nothing of this class is admitted.
    capacity: usize,
    control: Control,
}

impl Line {
    fn remove(&mut self, position: usize) -> Option<Job> {
        let job = self.jobs.remove(position)?;
        self.request_count -= job.request_count;
        Some(job)
    }

    /// The job that has waited longest of those that have not been begun.
    fn first_refusable(&self) -> Option<usize> {
        self.jobs.iter().position(|job| !job.is_begun)
    }

    fn front_waited_ns(&self, now_ns: u64) -> u64 {
        self.jobs.front().map_or(0, |job| job.waited_ns(now_ns))
    }

    /// How long its jobs keep the workers that may do them.
    fn backlog_ns(&self) -> u64 {
        self.request_count as u64 * self.control.cost_ns() / self.worker_count_max as u64
    }

    fn can_run(&self) -> bool {
        !self.jobs.is_empty() && self.worker_count < self.worker_count_max
    }
}

/// Requests of all classes together beyond which none of this class is admitted: a flood of cheap
/// writes leaves room for reads, which go before them.
pub(in crate::work) fn capacity_of(config: &ServerConfig, class: Class) -> usize {
    let share_per_cent = match (config.overload, class) {
        (Overload::Adaptive, Class::Write) => 90,
        (Overload::Adaptive, Class::Range) => 70,
        _ => 100,
    };
    config.queue_capacity * share_per_cent / 100
}

pub(super) struct Queue {
    config: Arc<ServerConfig>,
    queue_wait_max_ns: u64,
    /// One for each class, by priority.
    lines: [Line; Class::COUNT],
    request_count: usize,
    /// Of these, pieces of ranges that have begun.
    begun_count: usize,
    request_count_max: usize,
    stopping: bool,
}

/// What the queue and its workers have done and do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolStats {
    pub(crate) worker_count: usize,
    pub(crate) busy_count: usize,
    pub(crate) queue_capacity: usize,
    /// Requests that wait, by class, and the most that ever waited together.
    pub(crate) queued: [usize; Class::COUNT],
    pub(crate) queued_max: usize,
    pub(crate) done: [u64; Class::COUNT],
    /// What a request costs a worker, by class, smoothed.
    pub(crate) cost_ns: [u64; Class::COUNT],
    /// Whether the adaptive limit holds a class down to what can be done within the target.
    pub(crate) limited: [bool; Class::COUNT],
    /// Times that selectors handed work over, and that a sleeping worker was woken.
    pub(crate) hand_over_count: u64,
    pub(crate) wake_count: u64,
}

impl Queue {
    pub(super) fn new(config: Arc<ServerConfig>) -> Queue {
        let workers = config.workers;
        let line = |class| {
            let worker_count_max = match class {
                Class::Read | Class::Write => workers,
                Class::Range => workers.saturating_sub((workers / 4).max(1)).max(1),
            };
            Line {
                worker_count_max,
                capacity: capacity_of(&config, class),
                control: Control::of_workers(worker_count_max),
                ..Line::default()
            }
        };
        Queue {
            queue_wait_max_ns: duration::ns(config.queue_wait_max),
            lines: Class::ALL.map(line),
            config,
            request_count: 0,
            begun_count: 0,
            request_count_max: 0,
            stopping: false,
        }
    }

    /// Admits a job, or not. Jobs that are not admitted, or have to make room, are added to
    /// `removed`.
    pub(super) fn offer(&mut self, job: Job, now_ns: u64, removed: &mut Vec<RemovedJob>) {
        if let Err(refusal) = self.judge(&job, now_ns, removed) {
            removed.push(RemovedJob { job, refusal });
            return;
        }
        self.request_count += job.request_count;
        self.begun_count += usize::from(job.is_begun);
        self.request_count_max = self.request_count_max.max(self.request_count);
        let line = &mut self.lines[job.class as usize];
        line.request_count += job.request_count;
        line.jobs.push_back(job);
    }

    /// Whether the job is admitted, after the oldest have made room for it where that is the
    /// policy; otherwise the reason for which it is removed.
    fn judge(
        &mut self,
        job: &Job,
        now_ns: u64,
        removed: &mut Vec<RemovedJob>,
    ) -> Result<(), Option<Refusal>> {
        let overload = self.config.overload;
        if self.stopping {
            return Err(Some(Refusal::Stopping));
        }
        if job.is_begun {
            return Ok(());
        }
        if overload == Overload::Adaptive && !self.admits(job, now_ns) {
            return Err(Some(Refusal::Overloaded));
        }
        while !self.fits(job) {
            match overload {
                Overload::Adaptive | Overload::Reject => return Err(Some(Refusal::QueueFull)),
                Overload::CallerRuns => return Err(None),
                Overload::DiscardOldest if self.discard_oldest(removed) => {}
                Overload::DiscardOldest => return Err(Some(Refusal::Discarded)),
            }
        }
        Ok(())
    }

    fn fits(&self, job: &Job) -> bool {
        let capacity = self.lines[job.class as usize].capacity;
        // Pieces of ranges that have begun are always admitted: they must not take the room of jobs
        // that go before them.
        let waiting_count = match job.class {
            Class::Read | Class::Write => self.request_count - self.begun_count,
            Class::Range => self.request_count,
        };
        waiting_count == 0 || waiting_count + job.request_count <= capacity
    }

    /// Whether the job will be done soon enough.
    fn admits(&mut self, job: &Job, now_ns: u64) -> bool {
        let index = job.class as usize;
        let backlog_ns = self.lines[..=index].iter().map(Line::backlog_ns).sum::<u64>();
        let is_busy = self.busy_count() == self.config.workers;
        let line = &mut self.lines[index];
        // The first job has waited for longer than its turn should have taken: work has become
        // slower. Unless a worker is idle: then the system has not let it run yet.
        let front_waited_ns = if is_busy { line.front_waited_ns(now_ns) } else { 0 };
        let wait_ns = backlog_ns.max(front_waited_ns);
        let wait_max_ns = self.queue_wait_max_ns;
        line.control.admit(job.request_count, wait_ns, wait_max_ns, now_ns)
    }

    /// Removes the oldest job that may be discarded; false if there is none.
    fn discard_oldest(&mut self, removed: &mut Vec<RemovedJob>) -> bool {
        let front = |index: usize| self.lines[index].jobs.front().filter(|job| !job.is_begun);
        let oldest =
            (0..Class::COUNT).filter_map(|index| Some((front(index)?.queued_ns, index))).min();
        let job = oldest.and_then(|(_, index)| self.pop(index));
        let is_discarded = job.is_some();
        removed.extend(job.map(|job| RemovedJob { job, refusal: Some(Refusal::Discarded) }));
        is_discarded
    }

    fn pop(&mut self, index: usize) -> Option<Job> {
        self.remove(index, 0)
    }

    fn remove(&mut self, index: usize, position: usize) -> Option<Job> {
        let job = self.lines[index].remove(position)?;
        self.request_count -= job.request_count;
        self.begun_count -= usize::from(job.is_begun);
        Some(job)
    }

    /// Moves the next jobs, all of one class, to `taken`. The worker that takes them reports with
    /// [`Queue::finish`].
    pub(super) fn take(
        &mut self,
        now_ns: u64,
        taken: &mut Vec<Job>,
        removed: &mut Vec<RemovedJob>,
    ) {
        self.give_up(now_ns, removed);
        let Some(index) = (0..Class::COUNT).find(|&index| self.lines[index].can_run()) else {
            return;
        };
        let line = &mut self.lines[index];
        line.worker_count += 1;
        let fair_count = (line.jobs.len() / self.config.workers).clamp(1, TAKEN_COUNT_MAX);
        let cost_ns = line.control.cost_ns();
        let mut left_ns = TAKEN_NS_MAX;
        while taken.len() < fair_count {
            let Some(next) = self.lines[index].jobs.front() else {
                break;
            };
            let job_ns = match cost_ns {
                // The cost is unknown: one at a time.
                0 => TAKEN_NS_MAX,
                cost_ns => cost_ns.saturating_mul(next.request_count as u64),
            };
            if !taken.is_empty() && job_ns > left_ns {
                break;
            }
            left_ns = left_ns.saturating_sub(job_ns);
            let Some(job) = self.pop(index) else {
                break;
            };
            self.lines[index].control.left(job.waited_ns(now_ns), now_ns);
            taken.push(job);
        }
    }

    /// Moves jobs that have waited for too long to `removed`.
    pub(super) fn give_up(&mut self, now_ns: u64, removed: &mut Vec<RemovedJob>) {
        let is_adaptive = self.config.overload == Overload::Adaptive;
        for index in 0..Class::COUNT {
            while let Some(position) = self.lines[index].first_refusable() {
                let job = &self.lines[index].jobs[position];
                let waited_ns = job.waited_ns(now_ns);
                let refusal = if waited_ns > self.queue_wait_max_ns {
                    Refusal::WaitedTooLong
                } else if is_adaptive && self.lines[index].control.gives_up(waited_ns) {
                    Refusal::Overloaded
                } else {
                    break;
                };
                let Some(job) = self.remove(index, position) else {
                    break;
                };
                let control = &mut self.lines[index].control;
                control.left(waited_ns, now_ns);
                control.gave_up(job.request_count, now_ns);
                removed.push(RemovedJob { job, refusal: Some(refusal) });
            }
        }
    }

    pub(super) fn finish(&mut self, finished: FinishedJobs) {
        let line = &mut self.lines[finished.class as usize];
        line.worker_count -= 1;
        line.done_count += finished.request_count as u64;
        line.control.note_cost(finished.worked_ns / finished.request_count.max(1) as u64);
    }

    /// Whether there is a job for another worker.
    pub(super) fn can_run(&self) -> bool {
        self.lines.iter().any(Line::can_run)
    }

    /// Removes all jobs, and refuses those to come.
    pub(super) fn stop(&mut self, removed: &mut Vec<RemovedJob>) {
        self.stopping = true;
        for index in 0..Class::COUNT {
            while let Some(job) = self.pop(index) {
                removed.push(RemovedJob { job, refusal: Some(Refusal::Stopping) });
            }
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    pub(super) fn busy_count(&self) -> usize {
        self.lines.iter().map(|line| line.worker_count).sum()
    }

    pub(super) fn stats(&self) -> PoolStats {
        let is_adaptive = self.config.overload == Overload::Adaptive;
        let lines = self.lines.each_ref();
        PoolStats {
            worker_count: self.config.workers,
            busy_count: self.busy_count(),
            queue_capacity: self.config.queue_capacity,
            queued: lines.map(|line| line.request_count),
            queued_max: self.request_count_max,
            done: lines.map(|line| line.done_count),
            cost_ns: lines.map(|line| line.control.cost_ns()),
            limited: lines.map(|line| is_adaptive && line.control.is_overloaded()),
            ..PoolStats::default()
        }
    }
}

#[cfg(test)]
mod tests;
