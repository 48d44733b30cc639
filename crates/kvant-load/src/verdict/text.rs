//! A verdict in words: its label, its headline, and its sentences.

use super::{Bound, Facts, SCRIPT_PART_MAX, Share, VALID_PERCENT, Verdict, part, queued_ns};
use crate::units::{counted, format_metric, format_time_ns};
use kvant_base::duration;

/// The advised rate, as a part of the highest, at which latencies are the server's again.
const CALM_PART: f64 = 0.8;

impl Bound {
    pub(super) fn words(self) -> &'static str {
        match self {
            Bound::Generator => "generator-bound",
            Bound::Server => "server-bound",
            Bound::Neither => "bound by neither",
        }
    }
}

impl Verdict {
    /// A short form for tables, such as `valid, server-bound`.
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
        let bound = if self.disturbance.is_some() { "disturbed" } else { self.bound.words() };
        format!("{validity}, {bound}")
    }

    /// One line without its end, such as `Verdict: valid, server-bound: ...`.
    pub fn line(&self) -> String {
        format!("Verdict: {}: {}", self.label(), self.headline)
    }
}

impl Facts<'_> {
    pub(super) fn bound(&self) -> (Bound, String) {
        let total = &self.outcome.total;
        if total.sent == 0 {
            if total.errors.connect > 0 {
                return (Bound::Server, "no connection could be opened".to_string());
            }
            if total.planned > 0 {
                return (Bound::Generator, format!("nothing of {} was sent", total.planned));
            }
            return (Bound::Neither, "nothing was planned in the measured time".to_string());
        }
        if total.completed == 0 {
            return (Bound::Server, format!("none of {} requests was answered", total.sent));
        }
        if self.is_closed {
            if self.is_generator_full() {
                return (Bound::Generator, format!("closed loop, {}", self.busy()));
            }
            let rate = format_metric(self.outcome.rate_achieved());
            return (Bound::Server, format!("closed loop, {rate} answers a second"));
        }
        let p99 = self.shares.iter().find(|share| share.percent == VALID_PERCENT);
        if let Some(p99) = p99.filter(|p99| !p99.is_server) {
            return (Bound::Generator, p99.of_generator());
        }
        let answered = format!("{:.2} % of the plan answered", self.answered_part * 100.0);
        if self.is_kept {
            let lag = format_time_ns(total.send_lag.percentile_ns(99.0));
            return (Bound::Neither, format!("{answered}, send lag p99 {lag}"));
        }
        if self.is_generator_full() {
            return (Bound::Generator, format!("{answered}, {}", self.busy()));
        }
        (Bound::Server, format!("{answered}, generator at {} CPU", percent(self.cpu_part)))
    }

    fn busy(&self) -> String {
        if self.is_full() {
            format!("a generator thread at {} CPU", percent(self.cpu_part))
        } else {
            format!("the script took {} of the time", percent(self.script_part))
        }
    }

    /// Advice, and then what else happened.
    pub(super) fn sentences(&self, bound: Bound, is_disturbed: bool) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.shares.iter().any(|share| !share.is_server) {
            let parts: Vec<String> = self.shares.iter().map(Share::of_server).collect();
            sentences
                .push(format!("Of the response time, the server's are: {}.", parts.join(", ")));
        }
        match bound {
            Bound::Generator if self.outcome.total.sent > 0 => {
                self.advise_generator(is_disturbed, &mut sentences);
            }
            Bound::Server if !self.is_closed && self.outcome.total.completed > 0 => {
                let achieved = self.outcome.rate_achieved();
                sentences.push(format!(
                    "The server, or the network to it, did {} requests a second. Latencies at that \
                     limit are a queue's: for the server's own, try -R {}.",
                    format_metric(achieved),
                    rounded(achieved * CALM_PART),
                ));
            }
            Bound::Neither if !self.late_percents().is_empty() => sentences.push(
                "Being woken takes a thread that long here: --spin always keeps it awake, for a \
                 core each."
                    .to_string(),
            ),
            _ => {}
        }
        if let Some([response_ns, service_ns]) = queued_ns(self.outcome).filter(|_| self.is_kept) {
            sentences.push(format!(
                "One request of ten waited until a connection was free: p90 is {} from the planned \
                 time, {} from the write. Near the highest rate, latencies are a queue's: compare \
                 runs at a lower one, such as -R {}, or with more connections.",
                format_time_ns(response_ns),
                format_time_ns(service_ns),
                rounded(self.outcome.rate_achieved() * CALM_PART),
            ));
        }
        if is_disturbed {
            sentences.push("Measure again when the machine is calm.".to_string());
        }
        self.remark(bound, &mut sentences);
        sentences
    }

    fn advise_generator(&self, is_disturbed: bool, sentences: &mut Vec<String>) {
        if self.is_closed || !self.is_kept || self.shares.iter().all(|share| !share.is_server) {
            sentences.push("These figures are the generator's own, not the server's.".to_string());
        }
        let total = &self.outcome.total;
        let script_cpu_part = part(total.source_ns as f64, total.cpu_ns as f64).min(1.0);
        if script_cpu_part >= SCRIPT_PART_MAX {
            sentences.push(format!(
                "The script took {} of the generator's CPU: make its strings once, at the top \
                 level, or use --workload, which needs no script.",
                percent(script_cpu_part)
            ));
        }
        let remedy = if self.is_full() {
            "Use more threads (-t), a lower rate, or another machine for the generator."
        } else if is_disturbed {
            "Its threads waited for a core, which the others had."
        } else if self.is_woken_late() {
            "Its threads woke up late although cores were free: --spin always keeps them awake. With \
             --wrk2-exact they wait in whole milliseconds, as wrk2 does."
        } else {
            "Its threads waited for a core: something else on this machine uses it, perhaps the \
             server. Give them cores of their own (taskset), or lower the rate."
        };
        sentences.push(remedy.to_string());
    }

    fn remark(&self, bound: Bound, sentences: &mut Vec<String>) {
        let outcome = self.outcome;
        let errors = &outcome.total.errors;
        if self.is_closed {
            sentences.push(
                "In a closed loop each connection asks when its answer is there: these latencies \
                 leave out what was not asked while the server was slow. Plan a rate (-R) to see it."
                    .to_string(),
            );
        }
        // The end of the measured time always finds some requests in flight.
        let in_flight = outcome.in_flight.min(self.in_flight_max.ceil() as u64);
        let unanswered = outcome.unanswered.count().saturating_sub(in_flight);
        if !self.is_closed && unanswered > 0 && bound != Bound::Neither {
            sentences.push(format!(
                "{} without an answer, the oldest for {}: the percentiles of wrk2's block leave \
                 them out.",
                counted(unanswered, "request is", "requests are"),
                format_time_ns(outcome.unanswered.max_ns()),
            ));
        }
        if errors.connect > 0 {
            sentences.push(format!(
                "{} to connect failed; the plan went to the other connections. Is the server \
                 listening, are there enough descriptors (ulimit -n) and ports?",
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
                format_time_ns(duration::ns(outcome.phase.duration)),
            ));
        }
    }
}

impl Share {
    /// Such as `3.80ms of p99 24.10ms are the generator's send lag`.
    fn of_generator(&self) -> String {
        format!(
            "{} of p{} {} are the generator's send lag",
            format_time_ns(self.generator_ns),
            self.percent,
            format_time_ns(self.response_ns)
        )
    }

    /// Such as `p50 20.33ms of 20.38ms`.
    fn of_server(&self) -> String {
        format!(
            "p{} {} of {}",
            self.percent,
            format_time_ns(self.response_ns.saturating_sub(self.generator_ns)),
            format_time_ns(self.response_ns)
        )
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A rate rounded down to two digits, in the notation of `-R`.
pub(super) fn rounded(rate: f64) -> String {
    if rate < 10.0 {
        return format!("{rate:.1}");
    }
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    let rate = (rate / unit).floor() * unit;
    if rate >= 10_000.0 { format!("{:.0}k", rate / 1_000.0) } else { format!("{rate:.0}") }
}
