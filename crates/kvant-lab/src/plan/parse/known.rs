//! `[[known]]`: figures of others.

use crate::plan::places::{Places, Referred};
use crate::plan::reader::{Name, Table, Value, listed, nearest};
use crate::record::Known;

/// Keys of `[[known]]`.
pub(in crate::plan) const KEYS: &[&str] = &["workload", "phase", "what", "figures", "source"];

/// Names of figures.
pub(in crate::plan) const FIGURES: &[&str] =
    &["rate_max", "achieved", "p50", "p90", "p99", "p99.9", "max", "mean", "cpu_per_request"];

/// Reads all `[[known]]`: a row for each figure.
pub(super) fn known(plan: &Table<'_>, places: &mut Places) -> Vec<Known> {
    let Some(value) = plan.value("known") else { return Vec::new() };
    let mut rows = Vec::new();
    for value in value.elements() {
        let Some(table) = value.table("`known`", KEYS) else { continue };
        let workload = name(&table, "workload", Referred::Workload, places);
        let phase = name(&table, "phase", Referred::Phase, places);
        let (what, source) = (table.text("what"), table.text("source"));
        let figures = table.value("figures");
        for (key, is_given) in [
            ("workload", workload.is_some()),
            ("what", what.is_some()),
            ("figures", figures.is_some()),
            ("source", source.is_some()),
        ] {
            if !is_given {
                table.refuse(format!("`known` has no `{key}`"));
            }
        }
        for (figure, value) in figures.into_iter().flat_map(|value| value.named("`figures`")) {
            let Some(value) = figure_value(figure, &value) else { continue };
            rows.push(Known {
                workload: workload.clone().unwrap_or_default(),
                phase: phase.clone().unwrap_or_default(),
                what: what.clone().unwrap_or_default(),
                figure: figure.text.to_owned(),
                value,
                source: source.clone().unwrap_or_default(),
            });
        }
        table.finish();
    }
    rows
}

fn name(table: &Table<'_>, key: &str, referred: Referred, places: &mut Places) -> Option<String> {
    let value = table.value(key)?;
    let name = value.parse(key, |text| Ok::<_, String>(text.to_owned()))?;
    places.references.push((referred, name.clone(), value.at));
    Some(name)
}

/// Requests per second, or milliseconds.
fn figure_value(figure: Name<'_>, value: &Value<'_>) -> Option<f64> {
    if !FIGURES.contains(&figure.text) {
        let hint = match nearest(figure.text, FIGURES) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("there are {}", listed(FIGURES)),
        };
        value.refuse_at(figure.at, format!("there is no figure `{}`: {hint}", figure.text));
        return None;
    }
    value.parse(figure.text, |text| match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("`{text}` is no number of requests per second or milliseconds")),
    })
}
