//! Explanations: what each percentile of a stretch of time waited for.
//!
//! [`explain`] is a pure function from [`Evidence`] to an [`Explanation`]. The evidence is a
//! server's history ([`history`]) or an attempt of a run. docs/explain.md describes the method for
//! its readers; the steps are in these files:
//!
//! - `level`: which windows are calm, and the undisturbed level of a percentile;
//! - `direct`: what slow requests themselves say that they waited for; `reads`: what they waited
//!   for behind reads;
//! - `suspects`: events and disturbances of the machine; `contrast`: whether slow requests coincide
//!   with one of them more than by chance, and how much is attributable to it;
//! - `shares`: both together, as shares of the excess with intervals;
//! - `failures`: requests that failed or were refused;
//! - `slow_time`: when requests were slow, and how many came meanwhile;
//! - `cpu`: what the server used CPU time for meanwhile;
//! - `moments`: the slowest requests one by one;
//! - [`intervention`]: of an experiment that made suspects happen, what that changed.
//!
//! Invariants:
//! 1. Shares of a percentile add up to 1.
//! 2. Presence is no evidence: an event that is always there explains nothing.
//! 3. An explanation says that something coincides. It says that something is a cause only where an
//!    experiment has shown it.
//!
//! Threads: the caller's.

mod contrast;
mod cpu;
mod direct;
pub mod evidence;
mod failures;
pub mod history;
pub mod intervention;
mod level;
pub mod model;
mod moments;
mod reads;
mod shares;
mod slow_time;
mod suspects;
mod text;
mod verdict;
pub(crate) mod words;

pub use evidence::Evidence;
pub use model::Explanation;
pub use text::text;

use evidence::{OperationWindow, Window};
use level::Merged;
use model::{Effect, Overview};

/// Columns of the overview, at most.
const COLUMNS_MAX: usize = 300;
/// The lane of requests that failed.
const FAILED: &str = "failed requests";

/// Explains the evidence.
pub fn explain(evidence: &Evidence) -> Explanation {
    explain_with(evidence, Vec::new())
}

/// Explains the evidence of an experiment that made suspects happen, with these effects.
pub fn explain_with(evidence: &Evidence, effects: Vec<Effect>) -> Explanation {
    let suspects = suspects::suspects(evidence);
    let strata = contrast::strata(&evidence.windows);
    let mut explanation = Explanation {
        format: model::FORMAT.to_owned(),
        version: model::VERSION,
        source: evidence.source.clone(),
        start_ns: evidence.windows.first().map_or(0, |window| window.start_ns),
        length_ns: evidence
            .windows
            .first()
            .zip(evidence.windows.last())
            .map_or(0, |(first, last)| last.end_ns() - first.start_ns),
        wall_origin_ns: evidence.wall_origin_ns,
        verdict: Vec::new(),
        warnings: Vec::new(),
        rows: evidence
            .operations()
            .iter()
            .flat_map(|operation| shares::rows(evidence, operation, &suspects, &strata))
            .collect(),
        effects,
        slow_time: None,
        cpu: Vec::new(),
        moments: moments::moments(evidence, &suspects),
        overview: overview(evidence),
    };
    explanation.slow_time = slow_time::slow_time(evidence, &explanation.rows);
    explanation.cpu = cpu::uses(evidence, &explanation.rows);
    explanation.overview.lanes = moments::lanes(evidence, &suspects);
    let failed = moments::lane(evidence, FAILED, &failures::failed_ns(evidence));
    explanation.overview.lanes.splice(..0, failed);
    explanation.verdict = failures::sentences(evidence);
    explanation.verdict.extend(verdict::verdict(&explanation));
    explanation.warnings = verdict::warnings(evidence, &suspects);
    explanation
}

fn overview(evidence: &Evidence) -> Overview {
    let per_column = evidence.windows.len().div_ceil(COLUMNS_MAX).max(1);
    let begin_ns = evidence.windows.first().map_or(0, |window| window.start_ns);
    let end_ns = evidence.windows.last().map_or(0, Window::end_ns);
    // Windows may be longer than usual.
    let column_count = evidence.windows.len().div_ceil(per_column).max(1);
    let column_ns = (end_ns - begin_ns) / column_count as u64;
    let mut overview = Overview { column_ns, ..Overview::default() };
    for column in evidence.windows.chunks(per_column) {
        let of = |window: &'_ Window| -> Vec<OperationWindow> {
            window.operations.values().cloned().collect()
        };
        let operations: Vec<OperationWindow> = column.iter().flat_map(of).collect();
        let merged = Merged::of(&operations);
        overview.starts_ns.push(column[0].start_ns - begin_ns);
        overview.counts.push(merged.count());
        overview.p50_ns.push(merged.percentile_ns(50.0));
        overview.p99_ns.push(merged.percentile_ns(99.0));
        overview.max_ns.push(merged.max_ns());
    }
    overview
}

#[cfg(test)]
mod tests;
