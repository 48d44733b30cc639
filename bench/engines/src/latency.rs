//! Times of one kind of operation.
//!
//! The percentiles of a closed loop count a stall as one operation, however long it lasts, because
//! the loop issues no operation during a stall (Gil Tene calls this "coordinated omission").
//! [`Latency::arrival_p99`] and [`Latency::arrival_p999`] are the waits of requests that arrive at
//! random times instead.

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

/// The `share` quantile of the time from a random moment of the loop to the end of the operation in
/// flight: how long a request that arrives at that moment waits before it can start.
///
/// A request that arrives during an operation of length `d` waits for longer than `t` if it arrives
/// within the first `d - t`.
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
