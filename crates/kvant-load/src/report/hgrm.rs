//! Percentile distributions as text, as HdrHistogram plotters read them: the rows of
//! [`Histogram::spectrum`] in milliseconds, and statistics in comments (`#`).
//!
//! wrk2's block has the same rows; this format is a file of its own, with a comment about its
//! values.

#[cfg(test)]
mod tests;

use crate::histogram::{HIGHEST_NS, Histogram, LOWEST_NS, SIGNIFICANT_DIGITS};
use std::io::{self, Write};

const NS_PER_MS: f64 = 1e6;

/// Writes the distribution of `histogram`, in milliseconds, after a comment that names the values:
/// `what`.
pub fn write(out: &mut impl Write, histogram: &Histogram, what: &str) -> io::Result<()> {
    for line in what.lines() {
        writeln!(out, "# {line}")?;
    }
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    for row in histogram.spectrum() {
        let value_ms = row.value_ns as f64 / NS_PER_MS;
        if row.inverse().is_finite() {
            let (quantile, count, inverse) = (row.quantile, row.count, row.inverse());
            writeln!(out, "{value_ms:12.3} {quantile:14.12} {count:10} {inverse:14.2}")?;
        } else {
            // As the reference implementation: plotters skip a row without the fourth column, or
            // place it themselves.
            writeln!(out, "{value_ms:12.3} {:14.12} {:10}", row.quantile, row.count)?;
        }
    }
    let (mean_ms, stdev_ms) = (histogram.mean_ns() / NS_PER_MS, histogram.stdev_ns() / NS_PER_MS);
    let max_ms = histogram.max_ns() as f64 / NS_PER_MS;
    let (count, buckets, sub_buckets) = (histogram.count(), bucket_count(), sub_bucket_count());
    writeln!(out, "#[Mean    = {mean_ms:12.3}, StdDeviation   = {stdev_ms:12.3}]")?;
    writeln!(out, "#[Max     = {max_ms:12.3}, Total count    = {count:12}]")?;
    writeln!(out, "#[Buckets = {buckets:12}, SubBuckets     = {sub_buckets:12}]")
}

/// Values per bucket: the power of two that the significant digits need.
fn sub_bucket_count() -> u64 {
    (2 * 10_u64.pow(u32::from(SIGNIFICANT_DIGITS))).next_power_of_two()
}

/// Buckets up to the highest value, each of twice the range of the previous one.
fn bucket_count() -> u32 {
    let first_ns = sub_bucket_count() * LOWEST_NS;
    (0..)
        .find(|&doublings| (first_ns << doublings) > HIGHEST_NS)
        .expect("doubling reaches every bound")
        + 1
}
