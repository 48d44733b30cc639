//! Requests that failed or were refused: how many, when, and with which status.

use super::evidence::{Evidence, Window};
use super::words::{clock, percent};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Failures with less time between them are one span.
const APART_MIN_NS: u64 = 1_000_000_000;
/// Spans that are told, the longest.
const SPANS_MAX: usize = 3;
/// The operation that refused requests are counted as.
const REFUSED: &str = "refused";

/// A sentence for each operation with failures, the most failures first.
pub(super) fn sentences(evidence: &Evidence) -> Vec<String> {
    let mut failed: Vec<(u64, String)> = evidence
        .operations()
        .iter()
        .filter_map(|operation| sentence(evidence, operation))
        .collect();
    failed.sort_by_key(|(count, _)| Reverse(*count));
    failed.into_iter().map(|(_, sentence)| sentence).collect()
}

/// The number of failures, and what is said of them; `None` without any.
fn sentence(evidence: &Evidence, operation: &str) -> Option<(u64, String)> {
    let of_operation = |window: &'_ Window| {
        window.operations.get(operation).map_or((0, 0), |of| (of.count, of.failed))
    };
    let windows = || evidence.windows.iter().map(of_operation);
    let (count, failed) = windows().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    if failed == 0 {
        return None;
    }
    let spans_ns = spans_ns(&evidence.windows, |window| of_operation(window).1 > 0);
    let is_within = |window: &Window| {
        let after = spans_ns.partition_point(|(start_ns, _)| *start_ns <= window.start_ns);
        after > 0 && window.start_ns < spans_ns[after - 1].1
    };
    let within = evidence.windows.iter().filter(|window| is_within(window)).map(of_operation);
    let count_then: u64 = within.map(|(count, _)| count).sum();
    let what = match operation {
        REFUSED => format!("{failed} requests were refused"),
        _ => {
            let part = percent(failed as f64 / count as f64);
            format!("{failed} of {count} {operation} requests ({part}) failed")
        }
    };
    let part_then = match operation {
        REFUSED => String::new(),
        _ => format!(
            " ({} of those that were answered then)",
            percent(failed as f64 / count_then as f64)
        ),
    };
    let when = spans(evidence, spans_ns);
    let statuses = statuses(evidence, operation);
    Some((failed, format!("{what}, {when}{part_then}{statuses}.")))
}

/// When requests of any operation failed: begins and ends, monotonic.
pub(super) fn failed_ns(evidence: &Evidence) -> Vec<(u64, u64)> {
    spans_ns(&evidence.windows, |window| window.operations.values().any(|of| of.failed > 0))
}

/// Begins and ends of the spans of windows with failures.
fn spans_ns(windows: &[Window], has_failed: impl Fn(&Window) -> bool) -> Vec<(u64, u64)> {
    let mut spans_ns: Vec<(u64, u64)> = Vec::new();
    for window in windows.iter().filter(|window| has_failed(window)) {
        match spans_ns.last_mut() {
            Some((_, end_ns)) if window.start_ns < *end_ns + APART_MIN_NS => {
                *end_ns = window.end_ns();
            }
            _ => spans_ns.push((window.start_ns, window.end_ns())),
        }
    }
    spans_ns
}

fn spans(evidence: &Evidence, mut spans_ns: Vec<(u64, u64)>) -> String {
    let count = spans_ns.len();
    spans_ns.sort_by_key(|(start_ns, end_ns)| Reverse(end_ns - start_ns));
    spans_ns.truncate(SPANS_MAX);
    spans_ns.sort_unstable();
    let at = |at_ns| clock(at_ns, evidence.wall_origin_ns);
    let told: Vec<String> = spans_ns
        .iter()
        .map(|(start_ns, end_ns)| format!("{} to {}", at(*start_ns), at(*end_ns)))
        .collect();
    let more = match count - told.len() {
        0 => String::new(),
        more => format!(" and in {more} shorter spans"),
    };
    format!("from {}{more}", told.join(", "))
}

/// The statuses of those that the server kept, the most frequent first.
fn statuses(evidence: &Evidence, operation: &str) -> String {
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for request in evidence.requests.iter().filter(|one| one.operation == operation) {
        if request.status >= 500 {
            *counts.entry(request.status).or_default() += 1;
        }
    }
    let mut counts: Vec<(u16, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let told: Vec<String> = counts
        .iter()
        .map(|(status, _)| match meaning(*status) {
            "" => format!("{status}"),
            meaning => format!("{status} ({meaning})"),
        })
        .collect();
    if told.is_empty() { String::new() } else { format!(", with status {}", told.join(" or ")) }
}

/// What a status of the server says: see docs/http.md.
fn meaning(status: u16) -> &'static str {
    match status {
        500 => "an error of the storage",
        503 => "overloaded or not ready",
        504 => "the cluster did not answer",
        507 => "the disk was full",
        _ => "",
    }
}
