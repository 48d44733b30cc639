//! The text of wrk2, in the same layout to the column, for programs that parse it.
//!
//! 1. The layout is wrk2's: columns, blank lines, and the spaces after units of one letter or none.
//! 2. Figures may be finer: wrk2 measures in microseconds (`650.00us`), this program in nanoseconds
//!    (`650.12us`).
//! 3. `#[Buckets` describes wrk2's histogram (1 us to 24 h, 3 digits), as some parsers expect; the
//!    actual one is finer.
//! 4. wrk2 prints a division by zero (no response, no sample of `Req/Sec`) as `-nan`, which breaks
//!    parsers. This is 0 here, except in exact mode.
//!
//! Calibration lines are printed in exact mode only: there is no calibration otherwise.

use crate::histogram::{Histogram, SpectrumRow};
use crate::outcome::{Outcome, ThreadOutcome};
use crate::record::Errors;
use crate::units::{counted, format_binary, format_metric, format_time_s, format_time_us};
use std::time::Duration;

/// Fields of the first two lines.
#[derive(Clone, Debug)]
pub struct Header<'a> {
    /// As given.
    pub url: &'a str,
    /// The measured time (`-d`).
    pub duration: Duration,
    /// `-t`.
    pub thread_count: usize,
    /// `-c`.
    pub connection_count: usize,
}

/// Selects the printed parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// `-L`: the distribution and the spectrum of response times.
    pub latency: bool,
    /// `-U`: the same of service times. Implies `latency`.
    pub uncorrected: bool,
    /// `--wrk2-exact`: calibration lines, and `-nan` as wrk2 prints it.
    pub exact: bool,
}

/// Buckets of wrk2's histogram.
const BUCKETS: u32 = 27;
/// Sub-buckets of wrk2's histogram.
const SUB_BUCKETS: u32 = 2_048;
/// Rows of the distribution.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
/// Ends a block of latencies.
const RULE: &str = "----------------------------------------------------------\n";

/// The first two lines, which wrk2 prints before it measures.
pub fn header(header: &Header<'_>) -> String {
    let time = format_time_s(header.duration.as_secs_f64());
    header_of(&format!("{time} test"), header)
}

/// The same for a limited number of requests, which wrk2 does not have.
pub fn header_of_requests(count: u64, header: &Header<'_>) -> String {
    header_of(&counted(count, "request", "requests"), header)
}

fn header_of(what: &str, header: &Header<'_>) -> String {
    format!(
        "Running {what} @ {}\n  {} threads and {} connections\n",
        header.url, header.thread_count, header.connection_count,
    )
}

/// The text after the first two lines.
pub fn body(outcome: &Outcome, parts: Parts) -> String {
    let mut text = String::new();
    if parts.exact {
        text.push_str(&calibration(outcome));
    }
    let response = outcome.response();
    text.push_str(&thread_stats(outcome, &response, parts.exact));
    if parts.latency || parts.uncorrected {
        text.push_str(&distribution(&response, "Recorded Latency", parts.exact));
        text.push_str(RULE);
    }
    if parts.uncorrected {
        let title = "Uncorrected Latency (measured without taking delayed starts into account)";
        text.push('\n');
        text.push_str(&distribution(&outcome.service(), title, parts.exact));
        text.push_str(RULE);
    }
    text.push_str(&totals(outcome));
    text
}

fn calibration(outcome: &Outcome) -> String {
    let line = |thread: &ThreadOutcome| {
        let mean_ms = (thread.calibration_mean_ns? / 1e3).floor() / 1e3;
        let sample_ms = thread.sample_ns / 1_000_000;
        Some(format!(
            "  Thread calibration: mean lat.: {mean_ms:.3}ms, rate sampling interval: {sample_ms}ms\n"
        ))
    };
    outcome.threads.iter().filter_map(line).collect()
}

fn thread_stats(outcome: &Outcome, response: &Histogram, exact: bool) -> String {
    let rates: Vec<f64> =
        outcome.threads.iter().flat_map(|thread| thread.rates.iter().copied()).collect();
    let latency = Row {
        name: "Latency",
        mean: or_nan(response.mean_ns() / 1e3, response.is_empty(), exact),
        stdev: or_nan(response.stdev_ns() / 1e3, response.is_empty(), exact),
        max: response.max_ns() as f64 / 1e3,
        within_percent: latencies_within_stdev(response),
    };
    let (mean, stdev, within_percent) = describe(&rates);
    let rate = Row {
        name: "Req/Sec",
        mean: or_nan(mean, rates.is_empty(), exact),
        stdev: or_nan(stdev, rates.is_empty(), exact),
        max: rates.iter().copied().fold(0.0, f64::max),
        within_percent,
    };
    let mut text =
        format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev");
    text.push_str(&latency.print(format_time_us));
    text.push_str(&rate.print(format_metric));
    text
}

/// A line of `Thread Stats`.
struct Row {
    name: &'static str,
    mean: f64,
    stdev: f64,
    max: f64,
    within_percent: f64,
}

impl Row {
    fn print(&self, format: fn(f64) -> String) -> String {
        format!(
            "    {:<10}{}{}{}{:>8.2}%\n",
            self.name,
            column(self.mean, format, 8),
            column(self.stdev, format, 10),
            column(self.max, format, 9),
            self.within_percent,
        )
    }
}

fn distribution(histogram: &Histogram, title: &str, exact: bool) -> String {
    let mut text = format!("  Latency Distribution (HdrHistogram - {title})\n");
    for percent in PERCENTILES {
        let value_us = histogram.percentile_ns(percent) as f64 / 1e3;
        text += &format!("{percent:>7.3}%{}\n", column(value_us, format_time_us, 10));
    }
    text += "\n  Detailed Percentile spectrum:\n";
    text += "       Value   Percentile   TotalCount 1/(1-Percentile)\n\n";
    // wrk2 prints the last row of an empty histogram too.
    let empty = SpectrumRow { value_ns: 0, quantile: 1.0, count: 0 };
    for row in histogram.spectrum().chain(histogram.is_empty().then_some(empty)) {
        let (value_ms, inverse) = (row.value_ns as f64 / 1e6, row.inverse());
        let SpectrumRow { quantile, count, .. } = row;
        text += &format!("{value_ms:>12.3} {quantile:>12.6} {count:>12} {inverse:>12.2}\n");
    }
    let decimal =
        |ns: f64| nan_as_c(format!("{:.3}", or_nan(ns / 1e6, histogram.is_empty(), exact)));
    let (mean, stdev) = (decimal(histogram.mean_ns()), decimal(histogram.stdev_ns()));
    let (max_ms, count) = (histogram.max_ns() as f64 / 1e6, histogram.count());
    text += &format!("#[Mean    = {mean:>12}, StdDeviation   = {stdev:>12}]\n");
    text += &format!("#[Max     = {max_ms:>12.3}, Total count    = {count:>12}]\n");
    text + &format!("#[Buckets = {BUCKETS:>12}, SubBuckets     = {SUB_BUCKETS:>12}]\n")
}

fn totals(outcome: &Outcome) -> String {
    let total = &outcome.total;
    let seconds = outcome.measured_ns as f64 / 1e9;
    let bytes_per_second = if seconds > 0.0 { total.read_bytes as f64 / seconds } else { 0.0 };
    let mut text = format!(
        "  {} requests in {}, {}B read\n",
        total.completed,
        format_time_us(outcome.measured_ns as f64 / 1e3),
        format_binary(total.read_bytes as f64),
    );
    let Errors { connect, read, write, timeout, status } = total.errors;
    if connect + read + write + timeout != 0 {
        text += &format!(
            "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}\n"
        );
    }
    if status != 0 {
        text += &format!("  Non-2xx or 3xx responses: {status}\n");
    }
    text += &format!("Requests/sec: {:>9.2}\n", outcome.rate_achieved());
    text + &format!("Transfer/sec: {:>10}B\n", format_binary(bytes_per_second))
}

/// A figure with its unit (at most two letters), truncated to `width` columns as in wrk2. Numbers
/// end in the same column, whatever the length of their unit.
fn column(number: f64, format: fn(f64) -> String, width: usize) -> String {
    let text = nan_as_c(format(number));
    let letters = text.bytes().rev().take(2).filter(u8::is_ascii_alphabetic).count();
    let spaces_behind = 2 - letters;
    let width = width - spaces_behind;
    format!("{text:>width$.width$}{:spaces_behind$}", "")
}

fn or_nan(number: f64, is_undefined: bool, exact: bool) -> f64 {
    match (is_undefined, exact) {
        (true, true) => f64::NAN,
        (true, false) => 0.0,
        (false, _) => number,
    }
}

/// As C prints 0 / 0 on x86.
fn nan_as_c(text: String) -> String {
    text.replace("NaN", "-nan")
}

/// The percentage of values within a standard deviation of the mean; 0 without values.
fn latencies_within_stdev(histogram: &Histogram) -> f64 {
    let (mean, stdev) = (histogram.mean_ns(), histogram.stdev_ns());
    let hdr = histogram.as_hdr();
    let within: u64 = hdr
        .iter_recorded()
        .filter(|step| {
            let value = hdr.lowest_equivalent(step.value_iterated_to()) as f64;
            (mean - stdev).floor() <= value && value <= (mean + stdev).floor()
        })
        .map(|step| step.count_since_last_iteration())
        .sum();
    percent_of(within, histogram.count())
}

/// Mean, standard deviation, and the percentage of values within it; zeros without values.
fn describe(values: &[f64]) -> (f64, f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0, 0.0);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let stdev = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    // Equal values differ from their mean by rounding errors.
    let slack = mean.abs() * 1e-9;
    let within = values.iter().filter(|value| (*value - mean).abs() <= stdev + slack).count();
    (mean, stdev, percent_of(within as u64, values.len() as u64))
}

fn percent_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
