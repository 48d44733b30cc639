//! Adds up what workers report: by second as soon as all threads have reported it, by thread, and
//! in all.

use crate::config::Phase;
use crate::histogram::Histogram;
use crate::machine::MachineUse;
use crate::outcome::{Outcome, Second, ThreadOutcome};
use crate::record::Interval;
use crate::worker::messages::{self, Ended};
use std::collections::VecDeque;

/// The sums of a phase.
pub(super) struct Tally {
    threads: Vec<ThreadTally>,
    /// Seconds that some thread has not reported, in order.
    open: VecDeque<OpenSecond>,
    seconds: Vec<Second>,
    /// Memory for the next second.
    spare: Option<Interval>,
    planned: u64,
    backlog: u64,
    in_flight: u64,
    unanswered: Histogram,
    measured_ns: u64,
}

#[derive(Default)]
struct ThreadTally {
    total: Interval,
    /// Seconds reported.
    second_count: usize,
    ended: Option<ThreadOutcome>,
    is_stopped: bool,
}

struct OpenSecond {
    sum: Interval,
    backlog: u64,
}

impl Tally {
    /// Nothing, for so many threads.
    pub(super) fn new(thread_count: usize) -> Tally {
        Tally {
            threads: (0..thread_count).map(|_| ThreadTally::default()).collect(),
            open: VecDeque::new(),
            seconds: Vec::new(),
            spare: None,
            planned: 0,
            backlog: 0,
            in_flight: 0,
            unanswered: Histogram::new(),
            measured_ns: 0,
        }
    }

    /// Adds a second of a thread; gives its box back, empty.
    pub(super) fn add(&mut self, thread: usize, second: messages::Second) -> Box<Interval> {
        let messages::Second { mut interval, backlog, starts_anew } = second;
        let tally = &mut self.threads[thread];
        if starts_anew {
            for op in &mut tally.total.ops {
                op.response.clear();
                op.service.clear();
            }
            tally.total.lateness.clear();
        }
        tally.total.add(&interval);
        let at = tally.second_count - self.seconds.len();
        tally.second_count += 1;
        if at == self.open.len() {
            let sum = self.spare.take().unwrap_or_default();
            self.open.push_back(OpenSecond { sum, backlog: 0 });
        }
        let open = &mut self.open[at];
        open.sum.add(&interval);
        open.sum.start_ns = interval.start_ns;
        open.sum.end_ns = open.sum.end_ns.max(interval.end_ns);
        open.backlog += backlog;
        interval.clear();
        interval
    }

    /// A thread has ended its phase.
    pub(super) fn end(&mut self, thread: usize, ended: Ended) {
        self.planned += ended.planned;
        self.backlog += ended.backlog;
        self.in_flight += ended.in_flight;
        self.unanswered.add(&ended.unanswered);
        self.measured_ns = self.measured_ns.max(ended.measured_ns);
        self.threads[thread].is_stopped = ended.is_stopped;
        self.threads[thread].ended = Some(ended.outcome);
    }

    /// Whether all threads have.
    pub(super) fn has_ended(&self) -> bool {
        self.threads.iter().all(|thread| thread.ended.is_some())
    }

    /// Shows the seconds that all threads have reported. Whether more are wanted.
    pub(super) fn complete_seconds(
        &mut self,
        each_second: &mut dyn FnMut(&Interval) -> bool,
    ) -> bool {
        let mut wants_more = true;
        while !self.open.is_empty() {
            let number = self.seconds.len();
            let is_reported =
                |thread: &ThreadTally| thread.ended.is_some() || thread.second_count > number;
            if !self.threads.iter().all(is_reported) {
                break;
            }
            let Some(OpenSecond { mut sum, backlog }) = self.open.pop_front() else {
                break;
            };
            wants_more &= each_second(&sum);
            self.seconds.push(summary(&sum, backlog));
            sum.clear();
            self.spare = Some(sum);
        }
        wants_more
    }

    /// Seconds that all threads have reported.
    pub(super) fn second_count(&self) -> usize {
        self.seconds.len()
    }

    /// Use of the CPUs since the second before the last, or the start.
    pub(super) fn set_machine_of_last_second(&mut self, machine: Option<MachineUse>) {
        if let Some(second) = self.seconds.last_mut() {
            second.machine = machine;
        }
    }

    /// What the phase came to.
    pub(super) fn finish(
        self,
        phase: &Phase,
        start_wall_ms: u64,
        op_names: Vec<String>,
        is_cut_short: bool,
    ) -> Outcome {
        let mut total = Interval::default();
        let mut threads = Vec::new();
        let mut is_stopped = true;
        for thread in self.threads {
            total.add(&thread.total);
            is_stopped &= thread.is_stopped;
            threads.push(thread.ended.unwrap_or_default());
        }
        total.end_ns = self.measured_ns;
        if phase.request_count_max.is_some() {
            // What the plan would have gone on with is known only at the end.
            total.planned = self.planned;
        }
        Outcome {
            phase: *phase,
            start_wall_ms,
            measured_ns: self.measured_ns,
            op_names,
            total,
            seconds: self.seconds,
            backlog: self.backlog,
            in_flight: self.in_flight,
            unanswered: self.unanswered,
            threads,
            machine: None,
            is_cut_short: is_cut_short || is_stopped,
        }
    }
}

fn summary(sum: &Interval, backlog: u64) -> Second {
    let response = sum.response();
    let errors = &sum.errors;
    Second {
        start_ns: sum.start_ns,
        end_ns: sum.end_ns,
        planned: sum.planned,
        completed: sum.completed,
        backlog,
        errors: errors.connect + errors.read + errors.write + errors.status + errors.timeout,
        p50_ns: response.percentile_ns(50.0),
        p99_ns: response.percentile_ns(99.0),
        max_ns: response.max_ns(),
        machine: None,
    }
}

#[cfg(test)]
mod tests;
