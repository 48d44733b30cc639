//! Values of plans that `kvant load` has no parsers for, and defaults.

use kvant_load::assertion::Assertion;
use kvant_load::units;
use kvant_load::workload::WorkloadConfig;
use std::time::Duration;

/// Most repeats of a case.
const REPEATS_MAX: u64 = 1_000;
/// Most connections of a load.
const CONNECTIONS_MAX: u64 = 1_000_000;
/// Most threads of a generator.
const THREADS_MAX: u64 = 1_024;
/// What holds for all parts that do not say it themselves.
#[derive(Debug)]
pub(super) struct Defaults {
    pub(super) connection_count: usize,
    pub(super) thread_count: usize,
    pub(super) duration: Option<Duration>,
    pub(super) warmup: Option<Duration>,
    /// Keys, values and seed.
    pub(super) workload: WorkloadConfig,
}

/// A list of CPUs in taskset's form.
pub(super) fn cpu_list(text: &str) -> Result<Vec<u32>, String> {
    let problem = || format!("`{text}` is no list of CPUs: write numbers, such as 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().map_err(|_| problem());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(problem());
        }
        cpus.extend((first..=last).map(u32::from));
    }
    Ok(cpus)
}

/// An objective of a search.
pub(super) fn objective(text: &str) -> Result<Assertion, String> {
    let objective = Assertion::parse(text).map_err(|error| error.to_string())?;
    if objective.needs_baseline() {
        return Err(format!("`{text}` compares with an earlier run, which an experiment has not"));
    }
    Ok(objective)
}

/// A number of repeats.
pub(super) fn repeats(text: &str) -> Result<u32, String> {
    bounded(text, "repeats", REPEATS_MAX).map(|count| count as u32)
}

/// A number of connections.
pub(super) fn connection_count(text: &str) -> Result<usize, String> {
    bounded(text, "connections", CONNECTIONS_MAX).map(|count| count as usize)
}

/// A number of threads.
pub(super) fn thread_count(text: &str) -> Result<usize, String> {
    bounded(text, "threads", THREADS_MAX).map(|count| count as usize)
}

fn bounded(text: &str, what: &str, most: u64) -> Result<u64, String> {
    match units::parse_count(text)? {
        count if (1..=most).contains(&count) => Ok(count),
        count => Err(format!("{count} {what} are not within 1 and {most}")),
    }
}

/// A time above 0.
pub(super) fn positive_time(text: &str) -> Result<Duration, String> {
    match units::parse_time(text)? {
        Duration::ZERO => Err("must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// A whole number without a unit.
pub(super) fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number of 0 or more"))
}

/// A part of 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(part),
        _ => Err(format!("`{text}` is no part: write a number from 0 to 1")),
    }
}
