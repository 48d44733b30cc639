//! Adds up the reports of workers: by interval, as soon as all threads have reported it, by second,
//! by thread, and in total.

use crate::config::Phase;
use crate::machine::MachineUse;
use crate::outcome::{Outcome, Second};
use crate::record::Interval;
use crate::worker::messages::{ThreadEnd, ThreadInterval};
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;

pub(super) struct Tally {
    threads: Vec<ThreadTally>,
    /// Intervals that some thread has not reported, in order.
    open: VecDeque<ThreadInterval>,
    /// Intervals that all threads have reported.
    complete_count: usize,
    /// The sum of the complete intervals since the last whole second.
    second: ThreadInterval,
    seconds: Vec<Second>,
    /// Memory for the next interval.
    spare: Option<ThreadInterval>,
}

#[derive(Default)]
struct ThreadTally {
    total: Interval,
    interval_count: usize,
    end: Option<ThreadEnd>,
}

impl Tally {
    pub(super) fn new(thread_count: usize) -> Tally {
        Tally {
            threads: (0..thread_count).map(|_| ThreadTally::default()).collect(),
            open: VecDeque::new(),
            complete_count: 0,
            second: ThreadInterval::default(),
            seconds: Vec::new(),
            spare: None,
        }
    }

    /// Adds an interval of a thread; returns it, cleared.
    pub(super) fn add(&mut self, thread: usize, reported: ThreadInterval) -> Box<Interval> {
        let ThreadInterval { mut interval, backlog, restarts_histograms } = reported;
        let tally = &mut self.threads[thread];
        if restarts_histograms {
            tally.total.clear_latencies();
        }
        tally.total.add(&interval);
        let at = tally.interval_count - self.complete_count;
        tally.interval_count += 1;
        if at == self.open.len() {
            self.open.push_back(self.spare.take().unwrap_or_default());
        }
        let open = &mut self.open[at];
        open.interval.add(&interval);
        open.interval.start_ns = interval.start_ns;
        open.interval.end_ns = open.interval.end_ns.max(interval.end_ns);
        open.backlog += backlog;
        interval.clear();
        interval
    }

    pub(super) fn end(&mut self, thread: usize, end: ThreadEnd) {
        self.threads[thread].end = Some(end);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.threads.iter().all(|thread| thread.end.is_some())
    }

    /// Passes the intervals that all threads have reported to `each_interval`. Returns whether it
    /// wants more, and how many seconds there were.
    pub(super) fn complete_intervals(
        &mut self,
        each_interval: &mut dyn FnMut(&Interval) -> bool,
    ) -> (bool, usize) {
        let mut wants_more = true;
        let before = self.seconds.len();
        while !self.open.is_empty() {
            let number = self.complete_count;
            let has_reported =
                |thread: &ThreadTally| thread.end.is_some() || thread.interval_count > number;
            if !self.threads.iter().all(has_reported) {
                break;
            }
            let Some(mut complete) = self.open.pop_front() else {
                break;
            };
            self.complete_count += 1;
            wants_more &= each_interval(&complete.interval);
            self.add_to_second(&complete);
            complete.interval.clear();
            complete.backlog = 0;
            self.spare = Some(complete);
        }
        if self.has_ended() {
            self.end_second();
        }
        (wants_more, self.seconds.len() - before)
    }

    fn add_to_second(&mut self, complete: &ThreadInterval) {
        let (second, interval) = (&mut self.second, &complete.interval);
        if second.interval.end_ns == 0 {
            second.interval.start_ns = interval.start_ns;
        }
        second.interval.add(interval);
        second.interval.end_ns = interval.end_ns;
        second.backlog = complete.backlog;
        if interval.end_ns.is_multiple_of(SECOND_NS) {
            self.end_second();
        }
    }

    /// Ends the current second if there is anything in it.
    fn end_second(&mut self) {
        if self.second.interval.end_ns > 0 {
            self.seconds.push(summary(&self.second));
            self.second.interval.clear();
        }
    }

    pub(super) fn set_machine_of_last_second(&mut self, machine: Option<MachineUse>) {
        if let Some(second) = self.seconds.last_mut() {
            second.machine = machine;
        }
    }

    pub(super) fn finish(
        self,
        phase: &Phase,
        start_wall_ms: u64,
        op_names: Vec<String>,
        is_cut_short: bool,
    ) -> Outcome {
        let mut outcome = Outcome {
            phase: *phase,
            start_wall_ms,
            seconds: self.seconds,
            is_cut_short,
            ..Outcome::default()
        };
        let mut planned = 0;
        let mut is_source_stopped = true;
        for thread in self.threads {
            let end = thread.end.unwrap_or_default();
            outcome.total.add(&thread.total);
            outcome.measured_ns = outcome.measured_ns.max(end.measured_ns);
            outcome.backlog += end.backlog;
            outcome.in_flight += end.in_flight;
            outcome.unanswered.add(&end.unanswered);
            outcome.threads.push(end.outcome);
            planned += end.planned;
            is_source_stopped &= end.is_source_stopped;
        }
        outcome.total.name_ops(op_names);
        if phase.request_count_max.is_some() {
            // Each thread's share of the limit is known only at the end.
            outcome.total.planned = planned;
        }
        outcome.is_cut_short |= is_source_stopped;
        outcome
    }
}

fn summary(second: &ThreadInterval) -> Second {
    let sum = &second.interval;
    let response = sum.response();
    Second {
        start_ns: sum.start_ns,
        end_ns: sum.end_ns,
        planned: sum.planned,
        completed: sum.completed,
        backlog: second.backlog,
        errors: sum.errors.total(),
        p50_ns: response.percentile_ns(50.0),
        p99_ns: response.percentile_ns(99.0),
        max_ns: response.max_ns(),
        machine: None,
    }
}

#[cfg(test)]
mod tests;
