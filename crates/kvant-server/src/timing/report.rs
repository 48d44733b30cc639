//! The histograms as JSON for `/v0/stats` and as Prometheus text for `/metrics`.

use super::histogram::Snapshot;
use super::{Timings, as_us, summaries};
use crate::http::metrics_text::{append, header};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Upper bounds of the buckets in `/metrics`: in nanoseconds, and as text in seconds.
const BOUNDS: [(u64, &str); 16] = [
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (10_000_000_000, "10"),
];

/// The value of `latency` in `/v0/stats`: by operation, of those that occurred, then by phase.
pub(crate) fn latency_json(timings: &[Arc<Timings>]) -> Value {
    let mut latency: Map<String, Value> = Map::new();
    summaries(timings, |operation, phase, times| {
        let phases = latency.entry(operation.name()).or_insert_with(|| Map::new().into());
        phases[phase.name()] = times_json(times);
    });
    latency.into()
}

fn times_json(times: &Snapshot) -> Value {
    let count = times.count();
    json!({
        "count": count,
        "mean_us": as_us(times.sum_ns / count.max(1)),
        "p50_us": as_us(times.percentile_ns(50.0)),
        "p90_us": as_us(times.percentile_ns(90.0)),
        "p99_us": as_us(times.percentile_ns(99.0)),
        "p99_9_us": as_us(times.percentile_ns(99.9)),
        "max_us": as_us(times.max_ns),
    })
}

/// Appends the histograms of the operations that occurred.
pub(crate) fn write_metrics(timings: &[Arc<Timings>], out: &mut String) {
    const NAME: &str = "kvant_request_phase_seconds";
    header(out, NAME, "histogram", "Time of requests, by operation and phase.");
    summaries(timings, |operation, phase, times| {
        let labels = format!("operation=\"{}\",phase=\"{}\"", operation.name(), phase.name());
        for (bound_ns, bound) in BOUNDS {
            let count = times.count_at_most(bound_ns);
            append(out, format_args!("{NAME}_bucket{{{labels},le=\"{bound}\"}} {count}\n"));
        }
        let (count, sum) = (times.count(), times.sum_ns as f64 / 1e9);
        append(
            out,
            format_args!(
                "{NAME}_bucket{{{labels},le=\"+Inf\"}} {count}\n{NAME}_sum{{{labels}}} {sum}\n{NAME}_count{{{labels}}} {count}\n"
            ),
        );
    });
}
