//! What limited a phase: the generator, the server or neither; and which of its latencies are the
//! server's.
//!
//! 1. A percentile of the response time is the server's if at most `LAG_PART_MAX` of it, or
//!    `LAG_FLOOR_NS`, is send lag of the requests that took about as long ([`crate::lateness`]).
//!    A tenth of a latency of 100 us is 10 us, which a scheduler may take at any time; below the
//!    floor no reader is misled. A phase is valid if its p50, p90 and p99 are the server's.
//! 2. Generator-bound: p99 is the generator's; or the plan was not kept (or there is none: a closed
//!    loop) and one of its threads had no CPU left or the script took half of the time of all, and
//!    then nothing is valid. A full thread alone is no sign: it may poll until the next planned
//!    time.
//! 3. Server-bound: the plan was not kept although the generator had CPU left. In a closed loop the
//!    server sets the pace by definition, unless the generator does. Without any response nothing
//!    is valid.
//! 4. A plan is kept if at most `MISSING_PART_MAX` of it is unanswered at the end, beyond what is
//!    in flight at any time: the rate times the service time.
//! 5. Nothing is valid if the machine was disturbed (`disturbance.rs`).

mod text;

use crate::config::Rate;
use crate::disturbance::{PRESSURE_PART_MAX, disturbance};
use crate::histogram::Histogram;
use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};

/// A send lag up to this is no reason to distrust a latency, however fast the server is.
const LAG_FLOOR_NS: u64 = 50_000;
/// Part of a response time that may be send lag.
const LAG_PART_MAX: f64 = 0.1;
/// Part of a plan that may be unanswered.
const MISSING_PART_MAX: f64 = 0.005;
/// A thread that was on a CPU for this part of the time has none left.
const CPU_PART_FULL: f64 = 0.9;
/// The script limits the threads if it takes this part of their time.
const SCRIPT_PART_MAX: f64 = 0.5;
/// A response time so many times the service time was mostly a wait for a free connection.
const QUEUED_FACTOR: u64 = 2;
/// The percentile that shows such waits: a pause of the server is in higher ones only, unless it is
/// a tenth of the time.
const QUEUED_PERCENT: f64 = 90.0;
/// Percentiles that are divided between generator and server ...
const SHARES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// ... and the highest of them that a valid phase needs.
const VALID_PERCENT: f64 = 99.0;

/// What limited a phase; written as JSON in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// This program, or its machine.
    Generator,
    /// The server, or the network to it.
    Server,
    /// The plan was kept.
    Neither,
}

/// How much of a percentile of the response time is the generator's; written as JSON under these
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Which percentile.
    pub percent: f64,
    /// The percentile, in nanoseconds.
    pub response_ns: u64,
    /// The part of it that is send lag, in nanoseconds.
    pub generator_ns: u64,
    /// Whether that part is so small that the percentile is the server's.
    pub is_server: bool,
}

/// The judgement of a phase, with advice; written as JSON in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What limited it.
    pub bound: Bound,
    /// Whether its latencies are those of the server.
    pub is_valid: bool,
    /// What disturbed the machine, if anything did.
    #[serde(default)]
    pub disturbance: Option<String>,
    /// How much of some percentiles is the generator's; empty without responses.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// If only some percentiles are invalid, because the generator was late: which.
    #[serde(skip)]
    pub late_percents: Vec<f64>,
    /// The most important reason, without a final period; short.
    pub headline: String,
    /// Further findings and advice, in whole sentences.
    pub sentences: Vec<String>,
}

impl Verdict {
    /// Whether a percentile of the response time, or (`None`) any other figure, may be due to the
    /// generator or its machine.
    pub fn is_doubtful(&self, percent: Option<f64>) -> bool {
        if self.disturbance.is_some() {
            return true;
        }
        if !self.is_valid && self.late_percents.is_empty() {
            return self.bound != Bound::Server;
        }
        let Some(percent) = percent else {
            return !self.is_valid;
        };
        let below = self.shares.iter().rfind(|share| share.percent <= percent);
        let above = self.shares.iter().find(|share| share.percent >= percent);
        below.into_iter().chain(above).any(|share| !share.is_server)
    }
}

/// Judges a phase.
pub fn judge(outcome: &Outcome) -> Verdict {
    let facts = Facts::new(outcome);
    let (bound, headline) = facts.bound();
    let disturbance = disturbance(outcome).filter(|_| outcome.total.sent > 0);
    let is_disturbed = disturbance.is_some();
    let mut sentences = facts.sentences(bound, is_disturbed);
    if is_disturbed {
        sentences.insert(0, format!("As measured: {}, {headline}.", bound.words()));
    }
    // No percentile means anything if the generator did not send the plan or no response came.
    let is_meaningless = outcome.total.completed == 0
        || bound == Bound::Generator && (facts.is_closed || !facts.is_kept);
    let late = facts.late_percents();
    let is_partly_late = facts.shares.iter().any(|share| share.is_server);
    Verdict {
        bound,
        is_valid: !is_meaningless && !is_disturbed && late.is_empty(),
        late_percents: match is_meaningless || is_disturbed || !is_partly_late {
            true => Vec::new(),
            false => late,
        },
        shares: facts.shares,
        headline: disturbance.clone().unwrap_or(headline),
        disturbance,
        sentences,
    }
}

/// Response and service time, in nanoseconds, of which one request of ten has more, if requests
/// waited for a free connection for most of the former: the rate is near the highest, and its
/// latency is the length of a queue. `None` in a closed loop, which has no such wait.
pub(crate) fn queued_ns(outcome: &Outcome) -> Option<[u64; 2]> {
    let of = |histogram: &Histogram| histogram.percentile_ns(QUEUED_PERCENT);
    let [response_ns, service_ns] = [of(&outcome.response()), of(&outcome.service())];
    let is_queued = response_ns > QUEUED_FACTOR * (service_ns + of(&outcome.total.send_lag));
    (outcome.phase.rate != Rate::Closed && is_queued).then_some([response_ns, service_ns])
}

struct Facts<'a> {
    outcome: &'a Outcome,
    shares: Vec<Share>,
    is_closed: bool,
    /// CPU time of the busiest thread, as a part of the measured time.
    cpu_part: f64,
    /// The source's part of the time of all threads.
    script_part: f64,
    answered_part: f64,
    /// Upper bound of the requests in flight at any time.
    in_flight_max: f64,
    is_kept: bool,
}

impl<'a> Facts<'a> {
    fn new(outcome: &'a Outcome) -> Facts<'a> {
        let total = &outcome.total;
        let measured_ns = outcome.measured_ns as f64;
        let busiest_ns = outcome.threads.iter().map(|thread| thread.cpu_ns).max().unwrap_or(0);
        let missing = total.planned.saturating_sub(total.completed) as f64;
        let per_ns = part(total.planned as f64, measured_ns);
        // The mean twice, as the number varies, and one, as there may always be one.
        let in_flight_max = 2.0 * per_ns * outcome.service().mean_ns() + 1.0;
        let missing_max = total.planned as f64 * MISSING_PART_MAX + in_flight_max;
        Facts {
            outcome,
            shares: shares(outcome),
            is_closed: outcome.phase.rate == Rate::Closed,
            cpu_part: part(busiest_ns as f64, measured_ns),
            script_part: part(total.source_ns as f64, measured_ns * outcome.threads.len() as f64),
            answered_part: part(total.completed as f64, total.planned as f64),
            in_flight_max,
            is_kept: total.completed > 0 && missing <= missing_max,
        }
    }

    /// The percentiles that a valid phase needs and that are not the server's.
    fn late_percents(&self) -> Vec<f64> {
        let late = self.shares.iter().filter(|share| !share.is_server);
        late.map(|share| share.percent).filter(|percent| *percent <= VALID_PERCENT).collect()
    }

    /// Whether half of the requests were late although a core was free most of the time.
    fn is_woken_late(&self) -> bool {
        let waited_part = self.outcome.machine.and_then(|machine| machine.pressure_part);
        self.shares.first().is_some_and(|median| !median.is_server)
            && waited_part.is_some_and(|part| part <= PRESSURE_PART_MAX)
    }

    fn is_full(&self) -> bool {
        self.cpu_part >= CPU_PART_FULL
    }

    fn is_generator_full(&self) -> bool {
        self.is_full() || self.script_part >= SCRIPT_PART_MAX
    }
}

/// The division of the response times of requests that were answered or missed their deadline.
fn shares(outcome: &Outcome) -> Vec<Share> {
    let response = outcome.response();
    if response.is_empty() {
        return Vec::new();
    }
    let share = |percent: f64| {
        let response_ns = response.percentile_ns(percent);
        let generator_ns = outcome.total.lateness.of_response_ns(response_ns);
        let allowed_ns = (response_ns as f64 * LAG_PART_MAX).max(LAG_FLOOR_NS as f64);
        let is_server = generator_ns as f64 <= allowed_ns;
        Share { percent, response_ns, generator_ns, is_server }
    };
    SHARES.map(share).to_vec()
}

fn part(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

#[cfg(test)]
mod tests;
