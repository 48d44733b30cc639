//! The short form of a plan: the same experiment in two minutes, or in the time that is given, to
//! see that it works and what its report looks like. Its figures are no measurements.

use super::cases::VALUE_BYTES;
use super::{Data, PhaseTask, Plan, Requests, Workload};
use kvant_load::workload::{KeyBytes, ValueBytes, WorkloadConfig};
use std::time::Duration;

/// What the estimate may take of the given time.
const EXPECTED_PART: f64 = 0.62;
/// Most keys ...
const KEYS_MAX: u64 = 50_000;
/// ... and bytes of keys and values.
const DATA_BYTES_MAX: u64 = 64 << 20;
/// Most connections of an idle crowd.
const CROWD_MAX: usize = 1_000;

/// What a short form leaves of a plan.
struct Level {
    duration: Duration,
    warmup: Duration,
    /// Of a search: a step and what comes before it.
    search: (Duration, Duration),
    /// Values of an axis, of steps and of factors.
    values: usize,
}

/// From the longest.
const LEVELS: [Level; 8] = [
    Level::new([8_000, 1_000, 1_000, 300], 5),
    Level::new([5_000, 1_000, 500, 200], 4),
    Level::new([3_000, 500, 300, 100], 3),
    Level::new([2_000, 300, 200, 100], 3),
    Level::new([1_000, 200, 150, 50], 2),
    Level::new([700, 200, 100, 50], 2),
    Level::new([500, 100, 100, 20], 2),
    Level::new([500, 100, 100, 20], 1),
];

impl Level {
    /// Times in milliseconds.
    const fn new([duration, warmup, step, settle]: [u64; 4], values: usize) -> Level {
        Level {
            duration: Duration::from_millis(duration),
            warmup: Duration::from_millis(warmup),
            search: (Duration::from_millis(step), Duration::from_millis(settle)),
            values,
        }
    }
}

impl Plan {
    /// Within which the short form ends, unless another time is given.
    pub const QUICK: Duration = Duration::from_secs(120);

    /// A form that takes less than a time: fewer keys, shorter phases, no repeats, fewer values; as
    /// a last resort it leaves workloads out. [`Plan::shortened`] says what was done. Equal plans
    /// have equal short forms.
    #[must_use]
    pub fn quick(&self, within: Duration) -> Plan {
        let budget = within.mul_f64(EXPECTED_PART);
        let mut plan = self.clone();
        let mut said = Vec::new();
        if plan.repeats > 1 {
            said.push(format!("Each case is run once instead of {} times.", plan.repeats));
            plan.repeats = 1;
        }
        plan.shorten_data(&mut said);
        let mut short = (plan.clone(), Vec::new());
        for level in &LEVELS {
            let mut said = Vec::new();
            let mut of_level = plan.clone();
            of_level.shorten_phases(level, &mut said);
            of_level.shorten_values(level.values, &mut said);
            short = (of_level, said);
            if short.0.expected_duration() <= budget {
                break;
            }
        }
        let (mut plan, of_level) = short;
        said.extend(of_level);
        plan.drop_workloads(budget, &mut said);
        plan.shortened = said;
        plan
    }

    fn shorten_data(&mut self, said: &mut Vec<String>) {
        let before = self.data.as_ref().map(|data| data.workload.key_count);
        let swept = self.sweep.iter().filter(|axis| axis.name == VALUE_BYTES);
        let swept =
            swept.flat_map(|axis| &axis.values).filter_map(|text| ValueBytes::parse(text).ok());
        let swept_bytes = swept.map(mean_bytes).max().unwrap_or(0);
        if let Some(Data { workload, .. }) = &mut self.data {
            shorten_keys(workload, swept_bytes);
            let (before, now) = (before.unwrap_or_default(), workload.key_count);
            if now < before {
                said.push(format!("Subjects store {now} keys instead of {before}."));
            }
        }
        let stored = self.data.as_ref().map(|data| data.workload.key_count);
        for workload in &mut self.workloads {
            each_config(workload, &mut |config| {
                shorten_keys(config, swept_bytes);
                config.key_count = config.key_count.min(stored.unwrap_or(u64::MAX));
            });
            let crowd = workload.beside.as_deref_mut().filter(|beside| beside.rate.is_none());
            if let Some(crowd) = crowd {
                let count = &mut crowd.workload.connection_count;
                if *count > CROWD_MAX {
                    said.push(format!(
                        "The idle crowd beside {} has {CROWD_MAX} connections instead of {count}.",
                        workload.name
                    ));
                    crowd.slow_head_count = crowd.slow_head_count * CROWD_MAX / *count;
                    *count = CROWD_MAX;
                }
            }
        }
    }

    fn shorten_phases(&mut self, level: &Level, said: &mut Vec<String>) {
        for subject in &mut self.subjects {
            subject.warmup_min = subject.warmup_min.min(level.warmup);
        }
        let mut searched = None;
        let mut held = None;
        for phase in &mut self.phases {
            let (duration, warmup) = match phase.task {
                PhaseTask::FindMax => level.search,
                _ => (level.duration, level.warmup),
            };
            if phase.duration > duration || phase.warmup > warmup {
                let longest =
                    if phase.task == PhaseTask::FindMax { &mut searched } else { &mut held };
                *longest = (*longest).max(Some(phase.duration));
            }
            phase.duration = phase.duration.min(duration);
            phase.warmup = phase.warmup.min(warmup);
        }
        let sentence = |what: &str, now: Duration, before: Duration| {
            format!("{what} {now:?} instead of up to {before:?}.")
        };
        let search =
            searched.map(|before| sentence("A step of a search takes", level.search.0, before));
        let hold = held.map(|before| sentence("A rate is held for", level.duration, before));
        said.extend(search.into_iter().chain(hold));
    }

    fn shorten_values(&mut self, count: usize, said: &mut Vec<String>) {
        for axis in &mut self.sweep {
            let before = axis.values.len();
            if thin(&mut axis.values, count) {
                let (name, values) = (&axis.name, axis.values.join(", "));
                said.push(format!("Of the {before} values of {name} it takes {values}."));
            }
        }
        // A curve needs its ends.
        let count = count.max(2);
        for phase in &mut self.phases {
            let thinned = match &mut phase.task {
                PhaseTask::Steps(rates) => thin(rates, count),
                PhaseTask::Factors(factors) => thin(factors, count),
                _ => false,
            };
            if thinned {
                said.push(format!("Phase {} has {count} of its rates.", phase.name));
            }
        }
    }

    /// Leaves out the last workloads until the rest fits, and subjects without a case.
    fn drop_workloads(&mut self, budget: Duration, said: &mut Vec<String>) {
        let mut dropped = Vec::new();
        while self.workloads.len() > 1 && self.expected_duration() > budget {
            dropped.extend(self.workloads.pop().map(|workload| workload.name));
        }
        if !dropped.is_empty() {
            dropped.reverse();
            said.push(format!("Workloads are left out: {}.", dropped.join(", ")));
        }
        let cases = self.cases();
        self.subjects.retain(|subject| cases.iter().any(|case| case.subject == subject.name));
    }
}

/// Bounds keys and the bytes of the data. `swept_bytes` are those of the longest swept values.
fn shorten_keys(config: &mut WorkloadConfig, swept_bytes: u64) {
    let KeyBytes { max, .. } = config.key_bytes;
    let bytes = (max + mean_bytes(config.value_bytes).max(swept_bytes)).max(1);
    config.key_count = config.key_count.min(KEYS_MAX).min((DATA_BYTES_MAX / bytes).max(1));
}

fn mean_bytes(values: ValueBytes) -> u64 {
    match values {
        ValueBytes::Fixed(bytes) => bytes,
        ValueBytes::Random { min, max } | ValueBytes::Growing { min, max } => (min + max) / 2,
    }
}

fn each_config(workload: &mut Workload, change: &mut impl FnMut(&mut WorkloadConfig)) {
    if let Requests::Native(config) = &mut workload.requests {
        change(config);
    }
    if let Some(beside) = workload.beside.as_deref_mut() {
        each_config(&mut beside.workload, change);
    }
}

/// Leaves at most `count` values, the first and the last among them. Returns whether any went.
fn thin<T: Clone>(values: &mut Vec<T>, count: usize) -> bool {
    if values.len() <= count {
        return false;
    }
    let last = values.len() - 1;
    let gaps = count.saturating_sub(1).max(1);
    *values = (0..count).map(|index| values[index * last / gaps].clone()).collect();
    true
}
