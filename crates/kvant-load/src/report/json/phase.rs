//! One phase of a run as JSON, and the way back to an [`Outcome`].

use super::parts::{Latency, OpResult, RateFacts, ThreadResult, VerdictFacts};
use crate::config::Phase;
use crate::lateness::Lateness;
use crate::machine::MachineUse;
use crate::outcome::{Outcome, Second};
use crate::record::{Errors, Interval, OpRecord};
use crate::verdict::Verdict;
use kvant_base::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a phase came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// What the phase was for (`saturate`, `confirm`), where a run has phases of several purposes;
    /// else empty.
    pub label: String,
    /// The plan.
    pub rate: RateFacts,
    /// Load before the measured time, in nanoseconds.
    pub warmup_ns: u64,
    /// The measured time that was asked for, in nanoseconds.
    pub duration_ns: u64,
    /// The number of requests after which it was to stop.
    pub request_count_max: Option<u64>,
    /// Wall time at which the measured time began, in milliseconds since 1970.
    pub start_wall_ms: u64,
    /// How long was measured, in nanoseconds.
    pub measured_ns: u64,
    /// Whether it was ended before its time.
    pub is_cut_short: bool,
    /// Requests planned within the measured time.
    pub planned: u64,
    /// Requests written.
    pub sent: u64,
    /// Requests answered.
    pub completed: u64,
    /// Requests planned and not written when the time was over.
    pub backlog: u64,
    /// Requests written and not answered when the time was over.
    pub in_flight: u64,
    /// Answers a second.
    pub rate_achieved_per_s: f64,
    /// Bytes read, framing included.
    pub read_bytes: u64,
    /// What went wrong.
    pub errors: Errors,
    /// From the plan to the answer; a request that met its deadline with what it had waited.
    pub response: Latency,
    /// `response` with what was not answered at the end, at the least that it can be.
    pub response_with_unanswered: Latency,
    /// How long what was not answered had waited since its planned time.
    pub unanswered: Latency,
    /// From the write to the answer.
    pub service: Latency,
    /// The generator's own lateness.
    pub send_lag: Latency,
    /// How long opening connections took.
    pub connect: Latency,
    /// By kind of requests, in the order in which kinds were met.
    pub ops: Vec<OpResult>,
    /// By second.
    pub seconds: Vec<Second>,
    /// By thread.
    pub threads: Vec<ThreadResult>,
    /// Use of the CPUs of the generator's machine, where the system tells.
    #[serde(default)]
    pub machine: Option<MachineUse>,
    /// CPU time of all threads within the measured time, in nanoseconds.
    pub cpu_ns: u64,
    /// Of it, time spent making requests and looking at answers, in nanoseconds; an estimate.
    pub source_ns: u64,
    /// Who was the limit, if that was judged.
    pub verdict: Option<VerdictFacts>,
}

impl PhaseResult {
    /// All of `outcome`. `label` says what the phase was for, where a run has several purposes;
    /// else empty.
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
            threads: outcome.threads.iter().map(ThreadResult::of).collect(),
            machine: outcome.machine,
            cpu_ns: total.cpu_ns,
            source_ns: total.source_ns,
            verdict: verdict.map(VerdictFacts::of),
        }
    }

    /// The outcome that was written, histograms and all.
    ///
    /// # Errors
    /// `Invalid`: a histogram or a rate is not as this program writes it.
    pub fn outcome(&self) -> Result<Outcome> {
        let op = |op: &OpResult| -> Result<OpRecord> {
            Ok(OpRecord {
                response: op.response.decode()?,
                service: op.service.decode()?,
                statuses: op.statuses.iter().map(|(&status, &count)| (status, count)).collect(),
            })
        };
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
                ops: self.ops.iter().map(op).collect::<Result<_>>()?,
                send_lag: self.send_lag.decode()?,
                // What the verdict made of it is in the verdict.
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
            threads: self.threads.iter().map(ThreadResult::thread).collect(),
            machine: self.machine,
            is_cut_short: self.is_cut_short,
        })
    }
}

/// Every name has a row, and every record too: a kind that was named and never asked for has one
/// without values.
fn ops(outcome: &Outcome) -> Vec<OpResult> {
    let nothing = OpRecord::default();
    let count = outcome.op_names.len().max(outcome.total.ops.len());
    let op = |index: usize| {
        let record = outcome.total.ops.get(index).unwrap_or(&nothing);
        OpResult {
            name: outcome.op_names.get(index).cloned().unwrap_or_else(|| format!("kind {index}")),
            statuses: record.statuses.iter().copied().collect(),
            response: Latency::of(&record.response),
            service: Latency::of(&record.service),
        }
    };
    (0..count).map(op).collect()
}

/// `duration` in nanoseconds, as far as they reach (584 years).
pub(super) fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// JSON has no infinities.
pub(super) fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}
