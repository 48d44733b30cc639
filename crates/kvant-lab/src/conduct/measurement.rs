//! What the load of an attempt measured.

use kvant_load::find_max::FindMax;
use kvant_load::report::json::{ConfigFacts, HostFacts, ResultFile};
use kvant_load::units::{format_metric, format_time_ns};
use kvant_load::verdict::Verdict;
use kvant_load::{LoadConfig, Outcome};

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
            None if self.is_closed => {
                self.phases.first().map(|phase| phase.outcome.rate_achieved())
            }
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
            format!(
                "{}/s, p50 {}, p99 {}, max {}",
                format_metric(phase.outcome.rate_achieved()),
                format_time_ns(response.percentile_ns(50.0)),
                format_time_ns(response.percentile_ns(99.0)),
                format_time_ns(response.max_ns())
            )
        };
        let all: Vec<String> = self.phases.iter().map(phase).collect();
        all.join("; ")
    }
}
