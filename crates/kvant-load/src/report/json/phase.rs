//! One phase of a run as JSON, and its conversion back to an [`Outcome`].

use super::parts::{Latency, OpResult, RateFacts, duration_ns, finite};
use crate::config::Phase;
use crate::lateness::Lateness;
use crate::machine::MachineUse;
use crate::outcome::{Outcome, Second, ThreadOutcome};
use crate::record::{Errors, Interval, OpRecord};
use crate::verdict::Verdict;
use kvant_base::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The result of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The purpose of the phase in a search (`saturate`, `confirm`); else empty.
    pub label: String,
    /// The planned rate.
    pub rate: RateFacts,
    /// Configured length of the warm-up, in nanoseconds.
    pub warmup_ns: u64,
    /// Configured length of the measured time, in nanoseconds.
    pub duration_ns: u64,
    /// Configured number of requests.
    pub request_count_max: Option<u64>,
    /// Wall time at which the measured time began, in milliseconds since 1970.
    pub start_wall_ms: u64,
    /// Actual length of the measured time, in nanoseconds.
    pub measured_ns: u64,
    /// Whether the phase was ended early.
    pub is_cut_short: bool,
    /// Requests planned within the measured time.
    pub planned: u64,
    /// Requests written.
    pub sent: u64,
    /// Requests completed.
    pub completed: u64,
    /// Requests planned and not written at the end.
    pub backlog: u64,
    /// Requests written and not answered at the end.
    pub in_flight: u64,
    /// Responses per second.
    pub rate_achieved_per_s: f64,
    /// Bytes read, framing included.
    pub read_bytes: u64,
    /// Failures by kind.
    pub errors: Errors,
    /// From the plan to the response; for a request that missed its deadline, to the deadline.
    pub response: Latency,
    /// `response` with the ages of unanswered requests, which are lower bounds.
    pub response_with_unanswered: Latency,
    /// Ages of unanswered requests at the end, since their planned time.
    pub unanswered: Latency,
    /// From the write to the response.
    pub service: Latency,
    /// The generator's own lateness.
    pub send_lag: Latency,
    /// Durations of connection attempts.
    pub connect: Latency,
    /// By kind of requests, in the order of their first use.
    pub ops: Vec<OpResult>,
    /// By second.
    pub seconds: Vec<Second>,
    /// By thread.
    pub threads: Vec<ThreadOutcome>,
    /// CPU use of the generator's machine, if the system reports it.
    #[serde(default)]
    pub machine: Option<MachineUse>,
    /// CPU time of all threads within the measured time, in nanoseconds.
    pub cpu_ns: u64,
    /// Part of it spent in the request source, in nanoseconds; an estimate.
    pub source_ns: u64,
    /// The verdict, if the phase was judged.
    pub verdict: Option<Verdict>,
}

impl PhaseResult {
    /// All of `outcome`. `label` is the purpose of the phase in a search, else empty.
    pub fn of(outcome: &Outcome, label: &str, verdict: Option<&Verdict>) -> PhaseResult {
        let total = &outcome.total;
        PhaseResult {
            label: label.to_owned(),
            rate: RateFacts::of(outcome.phase.rate),
            warmup_ns: duration_ns(outcome.phase.warmup),
            duration_ns: duration_ns(outcome.phase.duration),
            request_count_max: outcome.phase.request_count_max,
            start_wall_ms: outcome.start_wall_ms,
            measured_ns: outcome.measured_ns,
            is_cut_short: outcome.is_cut_short,
            planned: total.planned,
            sent: total.sent,
            completed: total.completed,
            backlog: outcome.backlog,
            in_flight: outcome.in_flight,
            rate_achieved_per_s: finite(outcome.rate_achieved()),
            read_bytes: total.read_bytes,
            errors: total.errors,
            response: Latency::of(&outcome.response()),
            response_with_unanswered: Latency::of(&outcome.response_with_unanswered()),
            unanswered: Latency::of(&outcome.unanswered),
            service: Latency::of(&outcome.service()),
            send_lag: Latency::of(&total.send_lag),
            connect: Latency::of(&total.connect),
            ops: ops(outcome),
            seconds: outcome.seconds.clone(),
            threads: outcome.threads.clone(),
            machine: outcome.machine,
            cpu_ns: total.cpu_ns,
            source_ns: total.source_ns,
            verdict: verdict.cloned(),
        }
    }

    /// The written outcome, with its histograms.
    ///
    /// # Errors
    /// `Invalid`: a histogram or a rate is malformed.
    pub fn outcome(&self) -> Result<Outcome> {
        Ok(Outcome {
            phase: Phase {
                rate: self.rate.rate()?,
                warmup: Duration::from_nanos(self.warmup_ns),
                duration: Duration::from_nanos(self.duration_ns),
                request_count_max: self.request_count_max,
            },
            start_wall_ms: self.start_wall_ms,
            measured_ns: self.measured_ns,
            op_names: self.ops.iter().map(|op| op.name.clone()).collect(),
            total: Interval {
                start_ns: 0,
                end_ns: self.measured_ns,
                ops: self.ops.iter().map(OpResult::record).collect::<Result<_>>()?,
                send_lag: self.send_lag.decode()?,
                // The file has it in the shares of the verdict only.
                lateness: Lateness::default(),
                connect: self.connect.decode()?,
                planned: self.planned,
                sent: self.sent,
                completed: self.completed,
                read_bytes: self.read_bytes,
                errors: self.errors,
                cpu_ns: self.cpu_ns,
                source_ns: self.source_ns,
            },
            seconds: self.seconds.clone(),
            backlog: self.backlog,
            in_flight: self.in_flight,
            unanswered: self.unanswered.decode()?,
            threads: self.threads.clone(),
            machine: self.machine,
            is_cut_short: self.is_cut_short,
        })
    }
}

/// A row for each name and each record. A kind that was named and never used has an empty record.
fn ops(outcome: &Outcome) -> Vec<OpResult> {
    let empty = OpRecord::default();
    let count = outcome.op_names.len().max(outcome.total.ops.len());
    let op = |index: usize| {
        let name = outcome.op_names.get(index).cloned().unwrap_or_else(|| format!("kind {index}"));
        OpResult::of(name, outcome.total.ops.get(index).unwrap_or(&empty))
    };
    (0..count).map(op).collect()
}
