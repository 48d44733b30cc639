//! What the load of an attempt measured.

use crate::record::PhaseKind;
use kvant_load::find_max::{FindMax, Purpose};
use kvant_load::report::json::{ConfigFacts, HostFacts, ResultFile};
use kvant_load::units::{format_metric, format_time_ns};
use kvant_load::verdict::Verdict;
use kvant_load::{LoadConfig, Outcome};

/// Part of the requests that may fail without a note: that of a rate that holds.
const ERRORS_PART_MAX: f64 = 0.001;

/// A completed phase.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) verdict: Verdict,
}

/// The load of an attempt.
pub(super) struct Measurement {
    /// Begin of the measured time by the monotonic clock; `None` if it never began.
    pub(super) start_ns: Option<u64>,
    /// Empty for a search: it judges its own.
    pub(super) phases: Vec<Measured>,
    pub(super) found: Option<FindMax>,
    pub(super) is_closed: bool,
    pub(super) file: ResultFile,
}

/// A result without phases.
pub(super) fn result_file(config: &LoadConfig, requests: &str) -> ResultFile {
    ResultFile::new(Vec::new(), HostFacts::of_this_machine(), ConfigFacts::of(config, requests))
}

impl Measurement {
    /// The maximum, if the case finds one.
    pub(super) fn maximum(&self) -> Option<f64> {
        match &self.found {
            Some(found) => found.rate,
            None if self.is_closed => self.phases.first().map(|phase| phase.outcome.rate_good()),
            None => None,
        }
    }

    /// The most important figures in a line.
    pub(super) fn figures(&self) -> String {
        if let Some(found) = &self.found {
            return match found.rate {
                Some(rate) => {
                    let sure = if found.is_confirmed { "" } else { ", not confirmed" };
                    format!("{}/s hold{sure}", format_metric(rate))
                }
                None => "no rate holds".to_owned(),
            };
        }
        let phase = |phase: &Measured| {
            let response = phase.outcome.response_with_unanswered();
            // Of an external generator no latency is known.
            let latencies = (!response.is_empty()).then(|| {
                format!(
                    "p50 {}, p99 {}, max {}",
                    format_time_ns(response.percentile_ns(50.0)),
                    format_time_ns(response.percentile_ns(99.0)),
                    format_time_ns(response.max_ns())
                )
            });
            let rate = format!("{}/s", format_metric(phase.outcome.rate_achieved()));
            let parts = [Some(rate), latencies, errors_text(&phase.outcome)];
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        };
        let all: Vec<String> = self.phases.iter().map(phase).collect();
        all.join("; ")
    }

    /// What limits the trust in it, a sentence each. Beyond its limit a subject may refuse.
    pub(super) fn notes(&self, kind: PhaseKind) -> Vec<String> {
        let errors = self.phases.iter().filter_map(|phase| errors_text(&phase.outcome));
        let errors = errors.filter(|_| kind != PhaseKind::Factors);
        self.found.as_ref().and_then(doubt).into_iter().chain(errors).collect()
    }
}

/// Errors in words, if there are too many of them.
fn errors_text(outcome: &Outcome) -> Option<String> {
    let total = &outcome.total;
    let part = total.errors.total() as f64 / total.planned.max(1) as f64;
    (part > ERRORS_PART_MAX).then(|| format!("{:.1} % of the requests failed", part * 100.0))
}

/// Why the rate that a search found is not confirmed, if it found one.
fn doubt(found: &FindMax) -> Option<String> {
    if found.is_confirmed || found.rate.is_none() {
        return None;
    }
    let at_80 = found.points.iter().rfind(|point| point.purpose == Purpose::At80);
    let reasons = at_80.map_or(&[][..], |point| &point.judgement.reasons);
    Some(match reasons {
        [] => "the rate is not confirmed by longer runs".to_owned(),
        reasons => format!("the rate is not confirmed: at 80 % of it, {}", reasons.join("; ")),
    })
}

#[cfg(test)]
mod tests;
