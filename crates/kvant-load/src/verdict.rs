//! Who was the limit of a phase: the generator, the server or neither; and which of its latencies
//! are the server's.
//!
//! 1. A percentile of the response time is the server's when at most [`LAG_PART_MAX`] of it, or
//!    [`LAG_FLOOR_NS`], is send lag, by the requests that took about as long ([`crate::lateness`]).
//!    A tenth of a latency of 100 us is 10 us, which a scheduler takes at any time; below the floor
//!    no reader is misled. A phase is valid when its p50, p90 and p99 are.
//! 2. Generator-bound: p99 is the generator's; or the plan was not kept (or there is none: a closed
//!    loop) and one of its threads had no CPU left or the script took half of the time of all, and
//!    then nothing is valid. A full thread alone is no sign: it may poll until the next planned
//!    moment.
//! 3. Server-bound: the plan was not kept although the generator had CPU left. In a closed loop the
//!    server sets the pace by definition, unless the generator does. Without any answer nothing is
//!    valid.
//! 4. A plan is kept when at most [`MISSING_PART_MAX`] of it is unanswered at the end, beyond what
//!    is on its way at any moment: the rate times the service time.
//! 5. What a disturbed machine measured ([`crate::disturbance`]) is not valid, whatever was the
//!    limit.

use crate::config::Rate;
use crate::disturbance::disturbance;
use crate::outcome::Outcome;
use crate::units::{counted, format_metric, format_time_ns};
use serde::{Deserialize, Serialize};

/// A send lag up to this is no reason to distrust a latency, however fast the server is.
pub const LAG_FLOOR_NS: u64 = 50_000;
/// Part of a response time that may be send lag.
pub const LAG_PART_MAX: f64 = 0.1;
/// Part of a plan that may be unanswered.
pub const MISSING_PART_MAX: f64 = 0.005;
/// A thread that was on a core for this part of the time has no CPU left.
pub const CPU_PART_FULL: f64 = 0.9;
/// Part of the time of all threads from which on the script decides how fast they are.
pub const SCRIPT_PART_MAX: f64 = 0.5;
/// Percentiles that are divided between generator and server ...
const SHARES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// ... and the highest of them that a valid phase needs.
const VALID_PERCENT: f64 = 99.0;
/// Of the rate at which a server is at its limit: where its latencies mean something again.
const CALM_PART: f64 = 0.8;

/// What limited a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Whether that is so little that the percentile is the server's.
    pub is_server: bool,
}

/// A judgement of a phase, in words that can be acted on.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What limited it.
    pub bound: Bound,
    /// Whether its latencies are those of the server.
    pub is_valid: bool,
    /// Where they are not, because the generator was late: the percentiles for which that is so.
    /// Empty when there is another reason, which holds for all.
    pub late_percents: Vec<f64>,
    /// How much of each of some percentiles is the generator's; empty when nothing was answered.
    pub shares: Vec<Share>,
    /// What disturbed the machine, if that was too much.
    pub disturbance: Option<String>,
    /// The most important reason, without a final period; short.
    pub headline: String,
    /// Everything else worth saying, and what to do: whole sentences.
    pub sentences: Vec<String>,
}

impl Bound {
    fn words(self) -> &'static str {
        match self {
            Bound::Generator => "generator-bound",
            Bound::Server => "server-bound",
            Bound::Neither => "bound by neither",
        }
    }

    /// `generator`, `server`, `neither`: as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Generator => "generator",
            Bound::Server => "server",
            Bound::Neither => "neither",
        }
    }
}

impl Verdict {
    /// `valid, server-bound` and the like: for tables.
    pub fn label(&self) -> String {
        let validity = match (self.is_valid, &self.late_percents[..]) {
            (true, _) => "valid".to_string(),
            (false, []) => "NOT VALID".to_string(),
            (false, percents) => {
                let names: Vec<String> =
                    percents.iter().map(|percent| format!("p{percent}")).collect();
                format!("NOT VALID for {}", names.join(", "))
            }
        };
        if self.disturbance.is_some() {
            return format!("{validity}, disturbed");
        }
        format!("{validity}, {}", self.bound.words())
    }

    /// Whether what was measured may be the fault of the generator or its machine: a percentile of
    /// the response time, or (`None`) anything else.
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

    /// One line: `Verdict: valid, server-bound: ...`, without a line feed.
    pub fn line(&self) -> String {
        format!("Verdict: {}: {}", self.label(), self.headline)
    }
}

/// Judges a phase.
pub fn judge(outcome: &Outcome) -> Verdict {
    let facts = Facts::new(outcome);
    let is_closed = outcome.phase.rate == Rate::Closed;
    let (bound, headline) = if outcome.total.sent == 0 {
        facts.nothing_sent()
    } else if outcome.total.completed == 0 {
        facts.nothing_answered()
    } else if is_closed {
        facts.closed()
    } else {
        facts.planned()
    };
    let disturbance = disturbance(outcome).filter(|_| outcome.total.sent > 0);
    let mut sentences = facts.advice(bound, is_closed, disturbance.is_some());
    sentences.extend(facts.remarks(bound, is_closed));
    // Where the generator did not send what was planned, or nothing was answered, no percentile
    // says anything.
    let says_nothing =
        outcome.total.completed == 0 || bound == Bound::Generator && (is_closed || !facts.is_kept);
    let late = facts.late_percents();
    let is_partly_late = facts.shares.iter().any(|share| share.is_server);
    let headline = match &disturbance {
        Some(disturbance) => {
            sentences.insert(0, format!("As measured: {}, {headline}.", bound.words()));
            disturbance.clone()
        }
        None => headline,
    };
    Verdict {
        bound,
        is_valid: !says_nothing && disturbance.is_none() && late.is_empty(),
        late_percents: match says_nothing || disturbance.is_some() || !is_partly_late {
            true => Vec::new(),
            false => late,
        },
        shares: facts.shares,
        disturbance,
        headline,
        sentences,
    }
}

/// What a judgement is made of.
struct Facts<'a> {
    outcome: &'a Outcome,
    lag_p99_ns: u64,
    shares: Vec<Share>,
    /// Of the thread with most, 0 to 1.
    cpu_part: f64,
    /// Of the time of all threads.
    script_part: f64,
    /// Of the generator's CPU time.
    script_cpu_part: f64,
    answered_part: f64,
    /// Requests that are in flight at any moment, at most.
    on_its_way: f64,
    is_kept: bool,
}

impl<'a> Facts<'a> {
    fn new(outcome: &'a Outcome) -> Facts<'a> {
        let total = &outcome.total;
        let measured_ns = outcome.measured_ns as f64;
        let busiest_ns = outcome.threads.iter().map(|thread| thread.cpu_ns).max().unwrap_or(0);
        let threads_ns = measured_ns * outcome.threads.len() as f64;
        let missing = total.planned.saturating_sub(total.completed) as f64;
        let per_ns = part(total.planned as f64, measured_ns);
        // Twice, as what is on its way varies, and one, as something may always be.
        let on_its_way = 2.0 * per_ns * outcome.service().mean_ns() + 1.0;
        Facts {
            outcome,
            lag_p99_ns: total.send_lag.percentile_ns(99.0),
            shares: shares(outcome),
            cpu_part: part(busiest_ns as f64, measured_ns),
            script_part: part(total.source_ns as f64, threads_ns),
            script_cpu_part: part(total.source_ns as f64, total.cpu_ns as f64).min(1.0),
            answered_part: part(total.completed as f64, total.planned as f64),
            on_its_way,
            is_kept: total.completed > 0
                && missing <= total.planned as f64 * MISSING_PART_MAX + on_its_way,
        }
    }

    /// Requests without an answer, less what is in flight at any moment: the end of the time always
    /// meets some.
    fn unanswered_beyond_flight(&self) -> u64 {
        let outcome = self.outcome;
        let in_flight = outcome.in_flight.min(self.on_its_way.ceil() as u64);
        outcome.unanswered.count().saturating_sub(in_flight)
    }

    /// Percentiles that a valid phase needs and that are not the server's.
    fn late_percents(&self) -> Vec<f64> {
        let late = self.shares.iter().filter(|share| !share.is_server);
        late.map(|share| share.percent).filter(|percent| *percent <= VALID_PERCENT).collect()
    }

    fn p99(&self) -> Option<&Share> {
        self.shares.iter().find(|share| share.percent == VALID_PERCENT)
    }

    fn is_full(&self) -> bool {
        self.cpu_part >= CPU_PART_FULL
    }

    fn is_script_slow(&self) -> bool {
        self.script_part >= SCRIPT_PART_MAX
    }

    fn nothing_sent(&self) -> (Bound, String) {
        let total = &self.outcome.total;
        if total.errors.connect > 0 {
            return (Bound::Server, "no connection could be opened".to_string());
        }
        if total.planned > 0 {
            return (Bound::Generator, format!("nothing of {} was sent", total.planned));
        }
        (Bound::Neither, "nothing was planned in the measured time".to_string())
    }

    fn nothing_answered(&self) -> (Bound, String) {
        let sent = self.outcome.total.sent;
        (Bound::Server, format!("none of {sent} requests was answered"))
    }

    fn closed(&self) -> (Bound, String) {
        if self.is_full() || self.is_script_slow() {
            return (Bound::Generator, format!("closed loop, {}", self.busy()));
        }
        let rate = format_metric(self.outcome.rate_achieved());
        (Bound::Server, format!("closed loop, {rate} answers a second"))
    }

    fn planned(&self) -> (Bound, String) {
        let answered = format!("{:.2} % of the plan answered", self.answered_part * 100.0);
        if let Some(p99) = self.p99().filter(|p99| !p99.is_server) {
            return (Bound::Generator, p99.text());
        }
        if self.is_kept {
            let lag = format_time_ns(self.lag_p99_ns);
            return (Bound::Neither, format!("{answered}, send lag p99 {lag}"));
        }
        if self.is_full() || self.is_script_slow() {
            return (Bound::Generator, format!("{answered}, {}", self.busy()));
        }
        let cpu = percent(self.cpu_part);
        (Bound::Server, format!("{answered}, generator at {cpu} CPU"))
    }

    fn busy(&self) -> String {
        if self.is_full() {
            format!("a generator thread at {} CPU", percent(self.cpu_part))
        } else {
            format!("the script took {} of the time", percent(self.script_part))
        }
    }

    /// What to do about the bound.
    fn advice(&self, bound: Bound, is_closed: bool, is_disturbed: bool) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.shares.iter().any(|share| !share.is_server) {
            let parts: Vec<String> = self.shares.iter().map(Share::of_server).collect();
            sentences
                .push(format!("Of the response time, the server's are: {}.", parts.join(", ")));
        }
        match bound {
            Bound::Generator if self.outcome.total.sent > 0 => {
                if is_closed || !self.is_kept || self.shares.iter().all(|share| !share.is_server) {
                    sentences.push("These figures are the generator's own, not the server's.".to_string());
                }
                if self.script_cpu_part >= SCRIPT_PART_MAX {
                    let part = percent(self.script_cpu_part);
                    sentences.push(format!(
                        "The script took {part} of the generator's CPU: make its strings once, at the top level, or use \
                         --workload, which needs no script."
                    ));
                }
                sentences.push(if self.is_full() {
                    "Use more threads (-t), a lower rate, or another machine for the generator.".to_string()
                } else if is_disturbed {
                    "Its threads waited for a core, which the others had.".to_string()
                } else {
                    "Its threads waited for a core: something else on this machine uses it, perhaps the server. Give them \
                     cores of their own (taskset), or lower the rate."
                        .to_string()
                });
            }
            Bound::Server if !is_closed && self.outcome.total.completed > 0 => {
                let achieved = self.outcome.rate_achieved();
                sentences.push(format!(
                    "The server, or the network to it, did {} requests a second. Latencies at that limit are a queue's: \
                     for the server's own, try -R {}.",
                    format_metric(achieved),
                    rounded(achieved * CALM_PART),
                ));
            }
            Bound::Neither if !self.late_percents().is_empty() => sentences.push(
                "Being woken takes a thread that long here: --spin always keeps it awake, for a core each."
                    .to_string(),
            ),
            _ => {}
        }
        if is_disturbed {
            sentences.push("Measure again when the machine is calm.".to_string());
        }
        sentences
    }

    fn remarks(&self, bound: Bound, is_closed: bool) -> Vec<String> {
        let outcome = self.outcome;
        let errors = &outcome.total.errors;
        let mut sentences = Vec::new();
        if is_closed {
            sentences.push(
                "In a closed loop each connection asks when its answer is there: these latencies leave out what was not \
                 asked while the server was slow. Plan a rate (-R) to see it."
                    .to_string(),
            );
        }
        let unanswered = self.unanswered_beyond_flight();
        if !is_closed && unanswered > 0 && bound != Bound::Neither {
            sentences.push(format!(
                "{} without an answer, the oldest for {}: the percentiles of wrk2's block leave them out.",
                counted(unanswered, "request is", "requests are"),
                format_time_ns(outcome.unanswered.max_ns()),
            ));
        }
        if errors.connect > 0 {
            sentences.push(format!(
                "{} to connect failed; the plan went to the other connections. Is the server listening, are \
                 there enough descriptors (ulimit -n) and ports?",
                counted(errors.connect, "attempt", "attempts"),
            ));
        }
        if errors.read + errors.write > 0 {
            sentences.push(counted(
                errors.read + errors.write,
                "request was lost with its connection, which was opened anew.",
                "requests were lost with their connections, which were opened anew.",
            ));
        }
        if outcome.is_cut_short {
            sentences.push(format!(
                "It was ended after {} of {}.",
                format_time_ns(outcome.measured_ns),
                format_time_ns(
                    u64::try_from(outcome.phase.duration.as_nanos()).unwrap_or(u64::MAX)
                ),
            ));
        }
        sentences
    }
}

impl Share {
    /// `3.80ms of p99 24.10ms are the generator's send lag`.
    fn text(&self) -> String {
        format!(
            "{} of p{} {} are the generator's send lag",
            format_time_ns(self.generator_ns),
            self.percent,
            format_time_ns(self.response_ns)
        )
    }

    /// `p50 20.33ms of 20.38ms`.
    fn of_server(&self) -> String {
        format!(
            "p{} {} of {}",
            self.percent,
            format_time_ns(self.response_ns.saturating_sub(self.generator_ns)),
            format_time_ns(self.response_ns)
        )
    }
}

/// Of what was answered, or met its deadline.
fn shares(outcome: &Outcome) -> Vec<Share> {
    let response = outcome.response();
    if response.is_empty() {
        return Vec::new();
    }
    let share = |percent: &f64| {
        let response_ns = response.percentile_ns(*percent);
        let generator_ns = outcome.total.lateness.of_response_ns(response_ns);
        let allowed_ns = (response_ns as f64 * LAG_PART_MAX).max(LAG_FLOOR_NS as f64);
        Share {
            percent: *percent,
            response_ns,
            generator_ns,
            is_server: generator_ns as f64 <= allowed_ns,
        }
    };
    SHARES.iter().map(share).collect()
}

fn part(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A rate with two digits, as one writes it after `-R`.
fn rounded(rate: f64) -> String {
    if rate < 10.0 {
        return format!("{rate:.1}");
    }
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    let rate = (rate / unit).floor() * unit;
    if rate >= 10_000.0 { format!("{:.0}k", rate / 1_000.0) } else { format!("{rate:.0}") }
}

#[cfg(test)]
mod tests;
