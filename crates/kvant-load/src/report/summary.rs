//! The text after wrk2's block: figures that wrk2 does not have.
//!
//! 1. No line is longer than `WIDTH`; numbers are flush right in columns.
//! 2. Parsers of wrk2's text do not take any line for one of wrk2's.

use crate::config::Rate;
use crate::histogram::Histogram;
use crate::outcome::{Outcome, Second};
use crate::record::{Errors, OpRecord};
use crate::units::{counted, format_metric, format_time_ns};
use crate::verdict::Verdict;
use std::collections::BTreeMap;

/// The length of the longest line.
const WIDTH: usize = 100;

/// Most rows of a table by second; with more seconds, several share a row.
const SECOND_ROWS_MAX: usize = 60;
/// Columns for the name of a kind of requests.
const NAME_WIDTH: usize = 24;

/// The block of one phase: counts, latencies, machine, kinds of requests, errors, verdict.
pub fn phase(outcome: &Outcome, verdict: &Verdict) -> String {
    let mut text = counts(outcome);
    text += &all_statuses(outcome);
    text += &latencies(outcome);
    text += &machine(outcome);
    text += &kinds(outcome);
    text += &errors(&outcome.total.errors);
    text += &wrapped(&verdict.line(), "");
    for sentence in &verdict.sentences {
        text += &wrapped(sentence, "  ");
    }
    text
}

/// A table of several phases, one row each. Percentiles are those of the response time, with the
/// ages of unanswered requests.
pub fn steps(phases: &[(Outcome, Verdict)]) -> String {
    let mut text = format!(
        "  {:>4} {:>13} {:>10} {:>9} {:>9} {:>9} {:>8}  {}\n",
        "Step", "planned/s", "answered/s", "p50", "p99", "p99.9", "errors", "verdict"
    );
    for (index, (outcome, verdict)) in phases.iter().enumerate() {
        let response = outcome.response_with_unanswered();
        text += &format!(
            "  {:>4} {:>13} {:>10} {} {:>8}  {}\n",
            index + 1,
            rate(outcome.phase.rate),
            format_metric(outcome.rate_achieved()),
            cells(&response, &[50.0, 99.0, 99.9], 9),
            count(outcome.total.errors.total()),
            verdict.label(),
        );
    }
    text
}

/// A table by second of a phase, for ramps. A row of several seconds has the largest of their
/// latencies and backlogs (percentiles cannot be averaged).
pub fn seconds(outcome: &Outcome) -> String {
    let per_row = outcome.seconds.len().div_ceil(SECOND_ROWS_MAX).max(1);
    let mut text = format!(
        "  {:>8} {:>11} {:>11} {:>9} {:>9} {:>10} {:>10} {:>10}\n",
        "Second", "planned/s", "answered/s", "backlog", "errors", "p50", "p99", "max"
    );
    for row in outcome.seconds.chunks(per_row) {
        let (first, last) = (&row[0], &row[row.len() - 1]);
        let time_s = last.end_ns.saturating_sub(first.start_ns) as f64 / 1e9;
        let per_second =
            |sum: u64| format_metric(if time_s > 0.0 { sum as f64 / time_s } else { 0.0 });
        let largest = |of: fn(&Second) -> u64| row.iter().map(of).max().unwrap_or(0);
        let sum = |of: fn(&Second) -> u64| row.iter().map(of).sum::<u64>();
        text += &format!(
            "  {:>8} {:>11} {:>11} {:>9} {:>9} {:>10} {:>10} {:>10}\n",
            last.end_ns.div_ceil(1_000_000_000),
            per_second(sum(|second| second.planned)),
            per_second(sum(|second| second.completed)),
            count(largest(|second| second.backlog)),
            count(sum(|second| second.errors)),
            format_time_ns(largest(|second| second.p50_ns)),
            format_time_ns(largest(|second| second.p99_ns)),
            format_time_ns(largest(|second| second.max_ns)),
        );
    }
    text
}

fn counts(outcome: &Outcome) -> String {
    let total = &outcome.total;
    format!(
        "  {} planned, {} sent, {} completed, backlog {}, in flight {}\n",
        total.planned, total.sent, total.completed, outcome.backlog, outcome.in_flight
    )
}

/// `status 200: 3950, status 500: 50`, for all kinds together; empty if all have the same 2xx.
fn all_statuses(outcome: &Outcome) -> String {
    let mut sums = BTreeMap::new();
    for (status, number) in outcome.total.ops.iter().flat_map(|op| &op.statuses) {
        *sums.entry(*status).or_insert(0) += number;
    }
    if sums.len() <= 1 && sums.keys().all(|status| (200..300).contains(status)) {
        return String::new();
    }
    let parts: Vec<String> =
        sums.iter().map(|(status, number)| format!("status {status}: {number}")).collect();
    wrapped(&parts.join(", "), "  ")
}

fn latencies(outcome: &Outcome) -> String {
    let mut text = format!(
        "  {:<15}{:>10} {:>10} {:>10} {:>10} {:>10}\n",
        "Percentiles", "p50", "p90", "p99", "p99.9", "max"
    );
    let mut row = |name: &str, histogram: &Histogram, from: &str| {
        let percentiles = cells(histogram, &[50.0, 90.0, 99.0, 99.9, 100.0], 10);
        text += &format!("  {name:<15}{percentiles}  {from}\n");
    };
    row("response time", &outcome.response(), "from the planned time");
    if !outcome.unanswered.is_empty() {
        row("  + unanswered", &outcome.response_with_unanswered(), "and those at their age");
    }
    row("service time", &outcome.service(), "from the write");
    row("send lag", &outcome.total.send_lag, "the generator's own");
    if !outcome.total.connect.is_empty() {
        row("connect", &outcome.total.connect, "once a connection");
    }
    text
}

/// A line about the CPU use, if the system reports it.
fn machine(outcome: &Outcome) -> String {
    let Some(machine) = outcome.machine else {
        return String::new();
    };
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let mut text = format!("  CPU use: generator {}", percent(machine.generator_part));
    if let Some(part) = machine.server_part {
        text += &format!(", server {}", percent(part));
    }
    let others = if machine.others_include_server { "server and others" } else { "others" };
    text += &format!(
        ", {others} {}, stolen {}",
        percent(machine.others_part),
        percent(machine.stolen_part)
    );
    if let Some(part) = machine.pressure_part {
        text += &format!("; tasks waited {}", percent(part));
    }
    text + "\n"
}

/// A table by kind of requests, if there are several kinds or several statuses.
fn kinds(outcome: &Outcome) -> String {
    let is_used = |op: &&OpRecord| !op.response.is_empty() || !op.statuses.is_empty();
    let used: Vec<&OpRecord> = outcome.total.ops.iter().filter(is_used).collect();
    if used.len() < 2 && used.iter().all(|op| op.statuses.len() < 2) {
        return String::new();
    }
    let mut text = format!(
        "  {:<NAME_WIDTH$} {:>9} {:>10} {:>10} {:>10}  {}\n",
        "Kind", "count", "p50", "p99", "p99.9", "statuses"
    );
    let left = WIDTH - text.trim_end_matches("statuses\n").len();
    for op in used {
        text += &format!(
            "  {:<NAME_WIDTH$} {:>9} {}  {}\n",
            cut(&op.name, NAME_WIDTH),
            count(op.response.count()),
            cells(&op.response, &[50.0, 99.0, 99.9], 10),
            statuses(&op.statuses, left),
        );
    }
    text
}

fn errors(errors: &Errors) -> String {
    let kinds = [
        (errors.connect, "attempt to connect failed", "attempts to connect failed"),
        (errors.read, "answer broke off or was no HTTP", "answers broke off or were no HTTP"),
        (errors.write, "request could not be written", "requests could not be written"),
        (
            errors.timeout,
            "met its deadline (recorded with what it had waited)",
            "met their deadline (recorded with what they had waited)",
        ),
        (
            errors.status,
            "answer had a status that is not accepted",
            "answers had a status that is not accepted",
        ),
    ];
    let words: Vec<String> = kinds
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| counted(*count, one, many))
        .collect();
    if words.is_empty() {
        return String::new();
    }
    wrapped(&format!("Failures: {}", words.join(", ")), "  ")
}

/// Percentiles in columns of `width`, separated by a space; `-` without values.
fn cells(histogram: &Histogram, percents: &[f64], width: usize) -> String {
    let cell = |percent: &f64| match histogram.is_empty() {
        true => format!("{:>width$}", "-"),
        false => format!("{:>width$}", format_time_ns(histogram.percentile_ns(*percent))),
    };
    percents.iter().map(cell).collect::<Vec<String>>().join(" ")
}

fn rate(rate: Rate) -> String {
    match rate {
        Rate::Closed => "closed".to_string(),
        Rate::Constant(rate) => format_metric(rate),
        Rate::Ramp { from, to } => format!("{}..{}", format_metric(from), format_metric(to)),
    }
}

/// A count, with a unit if it would not fit otherwise.
fn count(number: u64) -> String {
    if number < 10_000_000 { number.to_string() } else { format_metric(number as f64) }
}

/// `200: 19998, 404: 12`, as many as fit.
fn statuses(statuses: &[(u16, u64)], width: usize) -> String {
    let mut text = String::new();
    for (index, (status, number)) in statuses.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let next = format!("{separator}{status}: {}", count(*number));
        let rest = statuses.len() - index;
        let more = format!("{separator}{rest} more");
        let is_last = rest == 1;
        if text.len() + next.len() + if is_last { 0 } else { ", 99 more".len() } > width {
            return text + &more;
        }
        text += &next;
    }
    text
}

/// `name`, truncated with `..` to `width`.
fn cut(name: &str, width: usize) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if name.chars().count() <= width {
        return name;
    }
    name.chars().take(width - 2).chain("..".chars()).collect()
}

/// `text` in lines of at most [`WIDTH`], indented, the lines after the first by two spaces more.
fn wrapped(text: &str, indent: &str) -> String {
    let mut words = text.split(' ');
    let mut wrapped = format!("{indent}{}", words.next().unwrap_or_default());
    let mut width = wrapped.chars().count();
    for word in words {
        let word_width = word.chars().count();
        if width + 1 + word_width > WIDTH {
            wrapped += &format!("\n{indent}  {word}");
            width = indent.len() + 2 + word_width;
        } else {
            wrapped += &format!(" {word}");
            width += 1 + word_width;
        }
    }
    wrapped + "\n"
}

#[cfg(test)]
mod tests;
