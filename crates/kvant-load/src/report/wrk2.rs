//! The text that wrk2 prints, in its layout to the column, so that what reads wrk2 reads this.
//!
//! 1. The layout is wrk2's: columns, blank lines, and the spaces that it leaves behind units of one
//!    letter and none.
//! 2. Figures may be finer: wrk2 measures in whole microseconds (`650.00us`), this in nanoseconds
//!    (`650.12us`).
//! 3. `#[Buckets` names wrk2's own histogram (1 us to 24 h, 3 digits), which some readers expect;
//!    ours is finer.
//! 4. What wrk2 divides by zero (nothing answered, no sample of `Req/Sec`) it prints as `-nan`,
//!    over which readers stumble. Here that is 0, except in exact mode.
//!
//! Calibration lines are printed in exact mode only: otherwise nothing is calibrated.

use crate::histogram::{Histogram, SpectrumRow};
use crate::outcome::Outcome;
use crate::units::{counted, format_binary, format_metric, format_time_s, format_time_us};
use std::fmt::Write as _;
use std::time::Duration;

/// What is printed when a run begins.
#[derive(Clone, Debug)]
pub struct Header<'a> {
    /// As it was given.
    pub url: &'a str,
    /// How long is measured (`-d`).
    pub duration: Duration,
    /// `-t`.
    pub thread_count: usize,
    /// `-c`.
    pub connection_count: usize,
}

/// Which parts are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// `-L`: the distribution and the spectrum of response times.
    pub latency: bool,
    /// `-U`: the same of service times. Implies `latency`.
    pub uncorrected: bool,
    /// `--wrk2-exact`: calibration lines, and `-nan` where wrk2 prints it.
    pub exact: bool,
}

/// Buckets of wrk2's histogram.
const BUCKETS: u32 = 27;
/// Sub-buckets of wrk2's histogram.
const SUB_BUCKETS: u32 = 2_048;
/// The rows of the distribution.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
/// Ends a block of latencies.
const RULE: &str = "----------------------------------------------------------\n";

/// The first two lines; wrk2 prints them before it measures.
pub fn header(header: &Header<'_>) -> String {
    let time = format_time_s(header.duration.as_secs_f64());
    header_of(&format!("{time} test"), header)
}

/// The same for a number of requests, which wrk2 does not know.
pub fn header_of_requests(count: u64, header: &Header<'_>) -> String {
    header_of(&counted(count, "request", "requests"), header)
}

fn header_of(what: &str, header: &Header<'_>) -> String {
    format!(
        "Running {what} @ {}\n  {} threads and {} connections\n",
        header.url, header.thread_count, header.connection_count,
    )
}

/// Everything after the first two lines.
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
    let mut text = String::new();
    for thread in &outcome.threads {
        if let Some(mean_ns) = thread.calibration_mean_ns {
            line(
                &mut text,
                format_args!(
                    "  Thread calibration: mean lat.: {:.3}ms, rate sampling interval: {}ms",
                    (mean_ns / 1e3).floor() / 1e3,
                    thread.sample_ns / 1_000_000,
                ),
            );
        }
    }
    text
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
        line(&mut text, format_args!("{percent:>7.3}%{}", column(value_us, format_time_us, 10)));
    }
    text.push_str("\n  Detailed Percentile spectrum:\n");
    line(
        &mut text,
        format_args!(
            "{:>12} {:>12} {:>12} {:>12}\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        ),
    );
    // wrk2 prints the last row of an empty histogram too.
    let empty = SpectrumRow { value_ns: 0, quantile: 1.0, count: 0 };
    for row in histogram.spectrum().chain(histogram.is_empty().then_some(empty)) {
        line(
            &mut text,
            format_args!(
                "{:>12.3} {:>12.6} {:>12} {:>12.2}",
                row.value_ns as f64 / 1e6,
                row.quantile,
                row.count,
                row.inverse()
            ),
        );
    }
    let decimal =
        |ns: f64| nan_as_c(format!("{:.3}", or_nan(ns / 1e6, histogram.is_empty(), exact)));
    line(
        &mut text,
        format_args!(
            "#[Mean    = {:>12}, StdDeviation   = {:>12}]",
            decimal(histogram.mean_ns()),
            decimal(histogram.stdev_ns())
        ),
    );
    line(
        &mut text,
        format_args!(
            "#[Max     = {:>12.3}, Total count    = {:>12}]",
            histogram.max_ns() as f64 / 1e6,
            histogram.count()
        ),
    );
    line(&mut text, format_args!("#[Buckets = {BUCKETS:>12}, SubBuckets     = {SUB_BUCKETS:>12}]"));
    text
}

fn totals(outcome: &Outcome) -> String {
    let total = &outcome.total;
    let errors = &total.errors;
    let seconds = outcome.measured_ns as f64 / 1e9;
    let bytes_per_second = if seconds > 0.0 { total.read_bytes as f64 / seconds } else { 0.0 };
    let mut text = format!(
        "  {} requests in {}, {}B read\n",
        total.completed,
        format_time_us(outcome.measured_ns as f64 / 1e3),
        format_binary(total.read_bytes as f64),
    );
    if errors.any_of_socket() {
        line(
            &mut text,
            format_args!(
                "  Socket errors: connect {}, read {}, write {}, timeout {}",
                errors.connect, errors.read, errors.write, errors.timeout
            ),
        );
    }
    if errors.status != 0 {
        line(&mut text, format_args!("  Non-2xx or 3xx responses: {}", errors.status));
    }
    line(&mut text, format_args!("Requests/sec: {:>9.2}", outcome.rate_achieved()));
    line(&mut text, format_args!("Transfer/sec: {:>10}B", format_binary(bytes_per_second)));
    text
}

/// A figure with its unit, flush right in `width` columns: numbers end at the same column, whatever
/// the length of the unit (two letters or less). Cut off when it is longer, as in wrk2.
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

/// As C prints what x86 gets from 0 / 0.
fn nan_as_c(text: String) -> String {
    text.replace("NaN", "-nan")
}

/// How many percent of all values lie within a standard deviation of the mean; 0 when there are
/// none.
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

/// Mean, standard deviation, and how many percent lie within it; zeros when there are no values.
fn describe(values: &[f64]) -> (f64, f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0, 0.0);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let stdev = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    // Equal values differ from their mean by what floating point rounds.
    let slack = mean.abs() * 1e-9;
    let within = values.iter().filter(|value| (*value - mean).abs() <= stdev + slack).count();
    (mean, stdev, percent_of(within as u64, values.len() as u64))
}

fn percent_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests;
