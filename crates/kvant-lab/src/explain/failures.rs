//! Requests that failed or were refused: how many, when, and with which status.

use super::evidence::Evidence;
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
    let (mut count, mut failed) = (0, 0);
    let mut spans_ns: Vec<(u64, u64)> = Vec::new();
    for window in &evidence.windows {
        let Some(of) = window.operations.get(operation) else { continue };
        count += of.count;
        failed += of.failed;
        if of.failed == 0 {
            continue;
        }
        match spans_ns.last_mut() {
            Some((_, end_ns)) if window.start_ns < *end_ns + APART_MIN_NS => {
                *end_ns = window.end_ns();
            }
            _ => spans_ns.push((window.start_ns, window.end_ns())),
        }
    }
    if failed == 0 {
        return None;
    }
    let what = match operation {
        REFUSED => format!("{failed} requests were refused"),
        _ => {
            let part = percent(failed as f64 / count as f64);
            format!("{failed} of {count} {operation} requests ({part}) failed")
        }
    };
    let when = spans(evidence, spans_ns);
    let statuses = statuses(evidence, operation);
    Some((failed, format!("{what}, {when}{statuses}.")))
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
