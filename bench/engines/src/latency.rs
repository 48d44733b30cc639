//! Times of one kind of operation.
//!
//! A percentile of operations in a closed loop says little about an engine that stops rarely and
//! for long: while it stops, nobody asks, so a stop counts as one operation in a million. What a
//! user sees who comes at a moment of his own is [`Latency::arrival_p99`] and
//! [`Latency::arrival_p999`] (Gil Tene calls the difference "coordinated omission").

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// In nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
    pub(crate) arrival_p99: u64,
    pub(crate) arrival_p999: u64,
}

impl From<&Histogram<u64>> for Latency {
    fn from(histogram: &Histogram<u64>) -> Latency {
        Latency {
            count: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
            arrival_p99: wait_of_arrivals(histogram, 0.99),
            arrival_p999: wait_of_arrivals(histogram, 0.999),
        }
    }
}

/// Within what time the running operation ends for this share of the moments of the loop: how long
/// somebody waits who comes at any moment and goes next.
///
/// An operation of the time `d` makes those wait for longer than `t` who come in its first `d - t`.
fn wait_of_arrivals(histogram: &Histogram<u64>, share: f64) -> u64 {
    let buckets: Vec<(f64, f64)> = histogram
        .iter_recorded()
        .map(|bucket| {
            let time = histogram.median_equivalent(bucket.value_iterated_to());
            (time as f64, bucket.count_at_value() as f64)
        })
        .collect();
    let total: f64 = buckets.iter().map(|(time, count)| time * count).sum();
    let late = total * (1.0 - share);
    // Count and time of the operations that are longer than the bucket below.
    let (mut longer_count, mut longer_time) = (0.0, 0.0);
    for (index, (time, count)) in buckets.iter().enumerate().rev() {
        longer_count += count;
        longer_time += time * count;
        let below = if index == 0 { 0.0 } else { buckets[index - 1].0 };
        if longer_time - longer_count * below >= late {
            return ((longer_time - late) / longer_count) as u64;
        }
    }
    0
}

#[cfg(test)]
mod tests;
