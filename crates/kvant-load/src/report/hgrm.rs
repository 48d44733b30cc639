//! Percentile distributions as text, as HdrHistogram plotters read them: the rows of
//! [`Histogram::spectrum`] in milliseconds, and statistics in comments (`#`).
//!
//! wrk2's block has the same rows; this format is a file of its own, with a comment about its
//! values.

#[cfg(test)]
mod tests;

use crate::histogram::{Histogram, SIGNIFICANT_DIGITS};
use std::io::{self, Write};

const NS_PER_MS: f64 = 1e6;
/// Values per bucket: the power of two that the significant digits need.
const SUB_BUCKETS: u64 = (2 * 10_u64.pow(SIGNIFICANT_DIGITS as u32)).next_power_of_two();

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
    let (count, buckets) = (histogram.count(), histogram.as_hdr().buckets());
    writeln!(out, "#[Mean    = {mean_ms:12.3}, StdDeviation   = {stdev_ms:12.3}]")?;
    writeln!(out, "#[Max     = {max_ms:12.3}, Total count    = {count:12}]")?;
    writeln!(out, "#[Buckets = {buckets:12}, SubBuckets     = {SUB_BUCKETS:12}]")
}
