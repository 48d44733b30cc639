//! `[sweep]` or several `[[sweep]]`: parameters that take several values.

use super::values::connection_count;
use crate::plan::places::{Places, Referred};
use crate::plan::reader::{Name, Table, Value};
use crate::plan::{SweepAxis, cases};
use kvant_load::units;
use kvant_load::workload::ValueBytes;

/// Keys of `[sweep]` that are no axis.
pub(in crate::plan) const KEYS: &[&str] = &["subjects", "workloads", "phases"];

/// Most values of an axis.
const VALUES_MAX: usize = 256;

/// Reads all sweeps of a plan.
pub(super) fn sweep(plan: &Table<'_>, places: &mut Places) -> Vec<SweepAxis> {
    let Some(value) = plan.value("sweep") else { return Vec::new() };
    let mut axes: Vec<SweepAxis> = Vec::new();
    for sweep in value.elements() {
        let named = sweep.named("`sweep`");
        let restriction = sweep.table("`sweep`", KEYS);
        let mut names = |key, referred| {
            restriction.as_ref().map(|table| places.names(table, key, referred)).unwrap_or_default()
        };
        let subjects = names("subjects", Referred::Subject);
        let workloads = names("workloads", Referred::Workload);
        let phases = names("phases", Referred::Phase);
        for (name, value) in named.iter().filter(|(name, _)| !KEYS.contains(&name.text)) {
            if axes.iter().any(|axis| axis.name == name.text) {
                value.refuse_at(name.at, format!("`{}` is swept twice", name.text));
            }
            let Some(values) = values(*name, value) else { continue };
            places.axes.push(name.at);
            axes.push(SweepAxis {
                name: name.text.to_owned(),
                values,
                subjects: subjects.clone(),
                workloads: workloads.clone(),
                phases: phases.clone(),
            });
        }
    }
    axes
}

fn values(name: Name<'_>, value: &Value<'_>) -> Option<Vec<String>> {
    let elements = value.elements();
    if !(1..=VALUES_MAX).contains(&elements.len()) {
        value.refuse(format!(
            "`{}` has {} values: write an array of 1 to {VALUES_MAX}",
            name.text,
            elements.len()
        ));
        return None;
    }
    let mut values: Vec<String> = Vec::new();
    for element in elements {
        let Some(text) = element.parse(name.text, |text| checked(name.text, text)) else {
            continue;
        };
        if values.contains(&text) {
            element.refuse(format!("`{}` has the value {text} twice", name.text));
        }
        values.push(text);
    }
    Some(values)
}

/// A value as cases have it, if it is one of that axis. Options of the server are not known here.
fn checked(axis: &str, text: &str) -> Result<String, String> {
    match axis {
        // Without its unit, since curves over connections compute with it.
        cases::CONNECTIONS => return connection_count(text).map(|count| count.to_string()),
        cases::VALUE_BYTES => ValueBytes::parse(text).map(drop)?,
        cases::RATE if units::parse_rate(text)? == 0.0 => {
            return Err("a rate of 0 plans no request".to_owned());
        }
        _ if text.is_empty() => return Err("an option needs a value".to_owned()),
        _ => {}
    }
    Ok(text.to_owned())
}
