//! One phase of a run as JSON, and the way back to an [`Outcome`].

use crate::config::{Phase, Rate};
use crate::histogram::Histogram;
use crate::outcome::{Outcome, Second, ThreadOutcome};
use crate::record::{Errors, Interval, OpRecord};
use crate::report::encoded;
use crate::verdict::Verdict;
use kvant_base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a phase came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// What the phase was for (`saturate`, `confirm`), where a run has phases of several purposes; else empty.
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
    pub errors: ErrorCounts,
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
    pub seconds: Vec<SecondResult>,
    /// By thread.
    pub threads: Vec<ThreadResult>,
    /// CPU time of all threads within the measured time, in nanoseconds.
    pub cpu_ns: u64,
    /// Of it, time spent making requests and looking at answers, in nanoseconds; an estimate.
    pub source_ns: u64,
    /// Who was the limit, if that was judged.
    pub verdict: Option<VerdictFacts>,
}

/// A rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateFacts {
    /// `closed`, `constant` or `ramp`.
    pub kind: String,
    /// Planned requests a second at the begin; 0 in a closed loop.
    pub from_per_s: f64,
    /// Planned requests a second at the end; the same as at the begin unless it is a ramp.
    pub to_per_s: f64,
}

/// Counted failures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCounts {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Answers that broke off or were no HTTP.
    pub read: u64,
    /// Requests that could not be written.
    pub write: u64,
    /// Answers that are no success.
    pub status: u64,
    /// Requests that met their deadline.
    pub timeout: u64,
}

/// A histogram and what people look at first. Percentiles are the end of a unit of resolution, the maximum its begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many values there are; with none, all that follows is 0.
    pub count: u64,
    /// The smallest, in nanoseconds.
    pub min_ns: u64,
    /// The mean, in nanoseconds.
    pub mean_ns: u64,
    /// The standard deviation, in nanoseconds.
    pub stdev_ns: u64,
    /// What half of all values do not exceed, in nanoseconds.
    pub p50_ns: u64,
    /// As `p50_ns`, for 75 %.
    pub p75_ns: u64,
    /// As `p50_ns`, for 90 %.
    pub p90_ns: u64,
    /// As `p50_ns`, for 99 %.
    pub p99_ns: u64,
    /// As `p50_ns`, for 99.9 %.
    pub p99_9_ns: u64,
    /// As `p50_ns`, for 99.99 %.
    pub p99_99_ns: u64,
    /// The largest, in nanoseconds.
    pub max_ns: u64,
    /// All values: HdrHistogram V2, deflated, base64; in nanoseconds.
    pub histogram: String,
}

/// One kind of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpResult {
    /// Its name.
    pub name: String,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// From the plan to the answer.
    pub response: Latency,
    /// From the write to the answer.
    pub service: Latency,
}

/// One second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondResult {
    /// Begin, in nanoseconds since the measured time began.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Requests whose planned time lies in it.
    pub planned: u64,
    /// Requests answered in it.
    pub completed: u64,
    /// Requests that were due and not written at its end.
    pub backlog: u64,
    /// Failures of all kinds.
    pub errors: u64,
    /// What half of the response times of what was answered in it do not exceed, in nanoseconds.
    pub p50_ns: u64,
    /// As `p50_ns`, for 99 %.
    pub p99_ns: u64,
    /// The largest, in nanoseconds.
    pub max_ns: u64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadResult {
    /// Requests answered.
    pub completed: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Answers a second, in samples of `sample_ns`.
    pub rates_per_s: Vec<f64>,
    /// Length of a sample in nanoseconds.
    pub sample_ns: u64,
    /// With wrk2's literal measurement: the mean latency of its calibration, in nanoseconds.
    pub calibration_mean_ns: Option<f64>,
}

/// Who was the limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictFacts {
    /// `generator`, `server` or `neither`.
    pub bound: String,
    /// Whether the figures are the server's: not when the generator was late by more than a tenth of what it measured.
    pub is_valid: bool,
    /// The most important reason.
    pub headline: String,
    /// Everything else worth saying, and what to do.
    pub sentences: Vec<String>,
}

impl PhaseResult {
    /// All of `outcome`. `label` says what the phase was for, where a run has several purposes; else empty.
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
            errors: ErrorCounts::of(&total.errors),
            response: Latency::of(&outcome.response()),
            response_with_unanswered: Latency::of(&outcome.response_with_unanswered()),
            unanswered: Latency::of(&outcome.unanswered),
            service: Latency::of(&outcome.service()),
            send_lag: Latency::of(&total.send_lag),
            connect: Latency::of(&total.connect),
            ops: ops(outcome),
            seconds: outcome.seconds.iter().map(SecondResult::of).collect(),
            threads: outcome.threads.iter().map(ThreadResult::of).collect(),
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
                statuses: op
                    .statuses
                    .iter()
                    .map(|(&status, &count)| (status, count))
                    .collect(),
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
                connect: self.connect.decode()?,
                planned: self.planned,
                sent: self.sent,
                completed: self.completed,
                read_bytes: self.read_bytes,
                errors: self.errors.errors(),
                cpu_ns: self.cpu_ns,
                source_ns: self.source_ns,
            },
            seconds: self.seconds.iter().map(SecondResult::second).collect(),
            backlog: self.backlog,
            in_flight: self.in_flight,
            unanswered: self.unanswered.decode()?,
            threads: self.threads.iter().map(ThreadResult::thread).collect(),
            is_cut_short: self.is_cut_short,
        })
    }
}

impl Latency {
    /// What `histogram` holds.
    pub fn of(histogram: &Histogram) -> Latency {
        // One that was given a value no times remembers the value as its bounds.
        let nothing = Histogram::new();
        let histogram = if histogram.is_empty() { &nothing } else { histogram };
        Latency {
            count: histogram.count(),
            min_ns: histogram.min_ns(),
            mean_ns: histogram.mean_ns().round() as u64,
            stdev_ns: histogram.stdev_ns().round() as u64,
            p50_ns: histogram.percentile_ns(50.0),
            p75_ns: histogram.percentile_ns(75.0),
            p90_ns: histogram.percentile_ns(90.0),
            p99_ns: histogram.percentile_ns(99.0),
            p99_9_ns: histogram.percentile_ns(99.9),
            p99_99_ns: histogram.percentile_ns(99.99),
            max_ns: histogram.max_ns(),
            histogram: encoded::encode(histogram),
        }
    }

    /// The histogram itself.
    ///
    /// # Errors
    /// `Invalid`: the text is no histogram.
    pub fn decode(&self) -> Result<Histogram> {
        encoded::decode(&self.histogram)
    }
}

impl VerdictFacts {
    fn of(verdict: &Verdict) -> VerdictFacts {
        VerdictFacts {
            bound: verdict.bound.name().to_owned(),
            is_valid: verdict.is_valid,
            headline: verdict.headline.clone(),
            sentences: verdict.sentences.clone(),
        }
    }
}

impl RateFacts {
    fn of(rate: Rate) -> RateFacts {
        let (kind, from, to) = match rate {
            Rate::Closed => ("closed", 0.0, 0.0),
            Rate::Constant(rate) => ("constant", rate, rate),
            Rate::Ramp { from, to } => ("ramp", from, to),
        };
        RateFacts {
            kind: kind.to_owned(),
            from_per_s: finite(from),
            to_per_s: finite(to),
        }
    }

    fn rate(&self) -> Result<Rate> {
        match self.kind.as_str() {
            "closed" => Ok(Rate::Closed),
            "constant" => Ok(Rate::Constant(self.from_per_s)),
            "ramp" => Ok(Rate::Ramp {
                from: self.from_per_s,
                to: self.to_per_s,
            }),
            other => Err(Error::invalid(format!("{other:?} is no kind of rate"))),
        }
    }
}

impl ErrorCounts {
    fn of(errors: &Errors) -> ErrorCounts {
        let &Errors {
            connect,
            read,
            write,
            status,
            timeout,
        } = errors;
        ErrorCounts {
            connect,
            read,
            write,
            status,
            timeout,
        }
    }

    fn errors(&self) -> Errors {
        let &ErrorCounts {
            connect,
            read,
            write,
            status,
            timeout,
        } = self;
        Errors {
            connect,
            read,
            write,
            status,
            timeout,
        }
    }
}

impl SecondResult {
    fn of(second: &Second) -> SecondResult {
        let &Second {
            start_ns,
            end_ns,
            planned,
            completed,
            backlog,
            errors,
            p50_ns,
            p99_ns,
            max_ns,
        } = second;
        SecondResult {
            start_ns,
            end_ns,
            planned,
            completed,
            backlog,
            errors,
            p50_ns,
            p99_ns,
            max_ns,
        }
    }

    fn second(&self) -> Second {
        let &SecondResult {
            start_ns,
            end_ns,
            planned,
            completed,
            backlog,
            errors,
            p50_ns,
            p99_ns,
            max_ns,
        } = self;
        Second {
            start_ns,
            end_ns,
            planned,
            completed,
            backlog,
            errors,
            p50_ns,
            p99_ns,
            max_ns,
        }
    }
}

impl ThreadResult {
    fn of(thread: &ThreadOutcome) -> ThreadResult {
        ThreadResult {
            completed: thread.completed,
            cpu_ns: thread.cpu_ns,
            rates_per_s: thread.rates.iter().map(|&rate| finite(rate)).collect(),
            sample_ns: thread.sample_ns,
            calibration_mean_ns: thread.calibration_mean_ns.filter(|mean| mean.is_finite()),
        }
    }

    fn thread(&self) -> ThreadOutcome {
        ThreadOutcome {
            rates: self.rates_per_s.clone(),
            sample_ns: self.sample_ns,
            calibration_mean_ns: self.calibration_mean_ns,
            cpu_ns: self.cpu_ns,
            completed: self.completed,
        }
    }
}

/// Every name has a row, and every record too: a kind that was named and never asked for has one without values.
fn ops(outcome: &Outcome) -> Vec<OpResult> {
    let nothing = OpRecord::default();
    let count = outcome.op_names.len().max(outcome.total.ops.len());
    let op = |index: usize| {
        let record = outcome.total.ops.get(index).unwrap_or(&nothing);
        OpResult {
            name: outcome
                .op_names
                .get(index)
                .cloned()
                .unwrap_or_else(|| format!("kind {index}")),
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
