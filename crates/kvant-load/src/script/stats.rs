//! The arguments of `done(summary, latency, requests)`.
//!
//! `latency` is in microseconds, with three decimals: finer than in wrk and wrk2. Single values can
//! be read as in wrk2, where `latency[i]` is the i-th of all `#latency` values in order, and as in
//! wrk 4, where `latency(i)` is the i-th distinct value with its count, and 0, 0 after the last.

use crate::histogram::Histogram;
use crate::outcome::Outcome;
use mlua::{Lua, MetaMethod, Table, UserData, UserDataFields, UserDataMethods, Value};

/// `summary`.
pub(super) fn summary(lua: &Lua, outcome: &Outcome) -> mlua::Result<Table> {
    let counted = &outcome.total.errors;
    let errors = lua.create_table_from([
        ("connect", counted.connect),
        ("read", counted.read),
        ("write", counted.write),
        ("status", counted.status),
        ("timeout", counted.timeout),
    ])?;
    let summary = lua.create_table()?;
    summary.set("duration", outcome.measured_ns / 1_000)?;
    summary.set("requests", outcome.total.completed)?;
    summary.set("bytes", outcome.total.read_bytes)?;
    summary.set("errors", errors)?;
    Ok(summary)
}

/// `latency` or `requests`.
pub(super) struct StatsHandle {
    values: Values,
    /// Distinct values in order, with their counts.
    distinct: Vec<(f64, u64)>,
    min: f64,
    max: f64,
    mean: f64,
    stdev: f64,
}

enum Values {
    /// In nanoseconds; scripts see microseconds.
    Latencies(Histogram),
    /// Sorted.
    Samples(Vec<f64>),
}

impl StatsHandle {
    /// Statistics of response times.
    pub(super) fn of_latencies(histogram: Histogram) -> StatsHandle {
        let hdr = histogram.as_hdr();
        let recorded = hdr.iter_recorded();
        let distinct = recorded
            .map(|step| {
                (us(hdr.lowest_equivalent(step.value_iterated_to())), step.count_at_value())
            })
            .collect();
        StatsHandle {
            distinct,
            min: us(histogram.min_ns()),
            max: us(histogram.max_ns()),
            mean: histogram.mean_ns() / 1e3,
            stdev: histogram.stdev_ns() / 1e3,
            values: Values::Latencies(histogram),
        }
    }

    /// Statistics of the threads' rates, in whole responses per second.
    pub(super) fn of_rates(rates: impl Iterator<Item = f64>) -> StatsHandle {
        let mut samples: Vec<f64> = rates.map(f64::trunc).collect();
        samples.sort_by(f64::total_cmp);
        let mut distinct: Vec<(f64, u64)> = Vec::new();
        for &sample in &samples {
            match distinct.last_mut() {
                Some((value, count)) if *value == sample => *count += 1,
                _ => distinct.push((sample, 1)),
            }
        }
        let count = samples.len() as f64;
        let mean = if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / count };
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        StatsHandle {
            distinct,
            min: samples.first().copied().unwrap_or(0.0),
            max: samples.last().copied().unwrap_or(0.0),
            mean,
            stdev: if samples.len() < 2 { 0.0 } else { (squares / (count - 1.0)).sqrt() },
            values: Values::Samples(samples),
        }
    }

    fn count(&self) -> u64 {
        match &self.values {
            Values::Latencies(histogram) => histogram.count(),
            Values::Samples(samples) => samples.len() as u64,
        }
    }

    fn percentile(&self, percent: f64) -> f64 {
        match &self.values {
            Values::Latencies(histogram) => us(histogram.percentile_ns(percent.clamp(0.0, 100.0))),
            Values::Samples(samples) => {
                let rank = (percent / 100.0 * samples.len() as f64).ceil().max(1.0) as usize;
                samples.get(rank.min(samples.len()).wrapping_sub(1)).copied().unwrap_or(0.0)
            }
        }
    }

    /// The `index`-th of all values in order, from 1.
    fn ranked(&self, index: f64) -> Option<f64> {
        let count = self.count() as f64;
        if !(1.0..=count).contains(&index) {
            return None;
        }
        Some(self.percentile(100.0 * index / count))
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl UserData for StatsHandle {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, this| Ok(this.min));
        fields.add_field_method_get("max", |_, this| Ok(this.max));
        fields.add_field_method_get("mean", |_, this| Ok(this.mean));
        fields.add_field_method_get("stdev", |_, this| Ok(this.stdev));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, percent: f64| Ok(this.percentile(percent)));
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.count()));
        methods.add_meta_method(MetaMethod::Index, |_, this, key: Value| {
            Ok(key
                .as_number()
                .or(key.as_integer().map(|index| index as f64))
                .and_then(|index| this.ranked(index)))
        });
        methods.add_meta_method(MetaMethod::Call, |_, this, index: f64| {
            let at = (index - 1.0).max(0.0) as usize;
            Ok(if index < 1.0 {
                (0.0, 0)
            } else {
                this.distinct.get(at).copied().unwrap_or((0.0, 0))
            })
        });
    }
}
