//! `[phase.NAME]`: what is done with a workload.

use super::rate::{ramp, rate};
use super::values::{Defaults, positive_time};
use crate::plan::places::{Places, Referred};
use crate::plan::reader::{Name, Table, Value};
use crate::plan::{MaximumOf, Phase, PhaseTask, PlannedRate};
use kvant_load::units;
use std::time::Duration;

/// Keys of a phase.
pub(in crate::plan) const KEYS: &[&str] = &[
    "rate",
    "find-max",
    "steps",
    "ramp",
    "factors",
    "closed",
    "workloads",
    "duration",
    "warmup",
    "profile",
];

/// Keys that say what a phase does.
const TASKS: [&str; 6] = ["rate", "find-max", "steps", "ramp", "factors", "closed"];

/// The measured time and the warm-up of a search's steps.
const SEARCH_STEP: Duration = Duration::from_secs(5);
const SEARCH_SETTLE: Duration = Duration::from_secs(1);
/// Shortest step of a search, as in `kvant load`.
const SEARCH_STEP_MIN: Duration = Duration::from_millis(100);
/// The measured time of a rate among several.
const STEP: Duration = Duration::from_secs(10);
/// The measured time of a single rate.
const HOLD: Duration = Duration::from_secs(30);
const WARMUP: Duration = Duration::from_secs(3);
/// Most rates of a phase.
const STEPS_MAX: usize = 1_000;

/// The phases of a plan that names none: the maximum, and 80 % of it.
pub(super) fn max_and_80(defaults: &Defaults) -> Vec<Phase> {
    let phase = |name: &str, task| Phase {
        name: name.to_owned(),
        workloads: Vec::new(),
        duration: duration_of(&task, defaults),
        warmup: warmup_of(&task, defaults),
        task,
        is_profiled: false,
        sped_up: None,
    };
    let share = PlannedRate::Share { part: 0.8, of: MaximumOf::Own };
    vec![phase("max", PhaseTask::FindMax), phase("at-80", PhaseTask::Hold(share))]
}

/// Reads `[phase.NAME]`, or `NAME = "find-max"`, `"closed"` or a rate.
pub(super) fn phase(
    name: Name<'_>,
    value: &Value<'_>,
    defaults: &Defaults,
    places: &mut Places,
) -> Option<Phase> {
    let what = format!("phase `{}`", name.text);
    let is_short = value.as_text().is_some();
    let table = if is_short { value.empty_table(&what, KEYS) } else { value.table(&what, KEYS)? };
    let (task, at) = match is_short {
        true => (value.parse(name.text, short_task)?, value.at),
        false => task(&table, &what, name)?,
    };
    let duration = table.parse("duration", positive_time);
    let phase = Phase {
        name: name.text.to_owned(),
        workloads: places.names(&table, "workloads", Referred::Workload),
        duration: duration.unwrap_or_else(|| duration_of(&task, defaults)),
        warmup: table
            .parse("warmup", units::parse_time)
            .unwrap_or_else(|| warmup_of(&task, defaults)),
        is_profiled: table.flag("profile"),
        sped_up: None,
        task,
    };
    if phase.task == PhaseTask::FindMax && phase.duration < SEARCH_STEP_MIN {
        table.refuse(format!("{what}: a step of a search needs at least 100ms"));
    }
    table.finish();
    places.phases.push(at);
    Some(phase)
}

fn short_task(text: &str) -> Result<PhaseTask, String> {
    match text {
        "find-max" => Ok(PhaseTask::FindMax),
        "closed" => Ok(PhaseTask::Closed),
        _ => rate(text)
            .map(PhaseTask::Hold)
            .map_err(|problem| format!("{problem}, or \"find-max\", or \"closed\"")),
    }
}

/// The task and its place.
fn task(table: &Table<'_>, what: &str, name: Name<'_>) -> Option<(PhaseTask, usize)> {
    let given: Vec<&str> = TASKS.into_iter().filter(|key| table.has(key)).collect();
    let key = match given[..] {
        [key] => key,
        [] => {
            table.refuse_at(
                name.at,
                format!(
                    "{what} does nothing: write rate, find-max, steps, ramp, factors or closed"
                ),
            );
            return None;
        }
        [first, second, ..] => {
            table.refuse_at(
                name.at,
                format!("{what} has both `{first}` and `{second}`: leave one of them out"),
            );
            // Both are known and need no further sentence.
            for key in given {
                table.value(key);
            }
            return None;
        }
    };
    let value = table.value(key)?;
    let task = match key {
        "rate" => PhaseTask::Hold(value.parse(key, rate)?),
        "steps" => PhaseTask::Steps(several(&value, key, rate)?),
        "factors" => {
            let factors = several(&value, key, factor)?;
            // Reports know a step by its factor: equal ones would be one figure.
            for (index, factor) in factors.iter().enumerate() {
                if factors[..index].contains(factor) {
                    value.refuse(format!("`{key}` has the factor {factor} twice"));
                }
            }
            PhaseTask::Factors(factors)
        }
        "ramp" => {
            let (from, to) = value.parse(key, ramp)?;
            PhaseTask::Ramp { from, to }
        }
        _ => {
            if value.parse(key, |text| Ok::<_, String>(text == "true"))? {
                if key == "closed" { PhaseTask::Closed } else { PhaseTask::FindMax }
            } else {
                value.refuse(format!("`{key}` can only be true"));
                return None;
            }
        }
    };
    Some((task, value.at))
}

fn several<T>(
    value: &Value<'_>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<Vec<T>> {
    let elements = value.elements();
    if !(1..=STEPS_MAX).contains(&elements.len()) {
        value.refuse(format!("`{key}` has {} values: write 1 to {STEPS_MAX}", elements.len()));
        return None;
    }
    let values: Vec<T> = elements.iter().filter_map(|element| element.parse(key, &parse)).collect();
    (values.len() == elements.len()).then_some(values)
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor <= 100.0 => Ok(factor),
        _ => {
            Err(format!("`{text}` is no factor: write a number above 0, at most 100, such as 1.5"))
        }
    }
}

fn duration_of(task: &PhaseTask, defaults: &Defaults) -> Duration {
    match task {
        PhaseTask::FindMax => SEARCH_STEP,
        PhaseTask::Steps(_) | PhaseTask::Factors(_) => defaults.duration.unwrap_or(STEP),
        PhaseTask::Hold(_) | PhaseTask::Ramp { .. } | PhaseTask::Closed => {
            defaults.duration.unwrap_or(HOLD)
        }
    }
}

fn warmup_of(task: &PhaseTask, defaults: &Defaults) -> Duration {
    let default = if *task == PhaseTask::FindMax { SEARCH_SETTLE } else { WARMUP };
    defaults.warmup.unwrap_or(default)
}
