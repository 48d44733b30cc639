//! Sweeps as tables of colour: the last axis runs over columns, the one before over rows; further
//! axes make tables of their own.

use super::markup::{Words, escape, note, section};
use super::numbers::{number, time};
use crate::model::{Measured, Report, Sweep};
use std::fmt::Write;

/// From this part of the scale on, text is drawn in the other colour: there both contrast equally.
const STRONG_PART: f64 = 0.68;

/// All sweeps.
pub(super) fn sweeps(report: &Report, words: &Words) -> String {
    if report.sweeps.is_empty() {
        return String::new();
    }
    let tables: String = report.sweeps.iter().map(|sweep| sweep_tables(sweep, words)).collect();
    let content = note("sweeps.note", words) + "<div class=\"sweeps\">\n" + &tables + "</div>\n";
    section("sweeps", words, &content)
}

fn sweep_tables(sweep: &Sweep, words: &Words) -> String {
    let leading = sweep.axes.len().saturating_sub(2);
    let mut groups: Vec<&[String]> = Vec::new();
    for (cell, _) in &sweep.cells {
        if let Some(group) = cell.get(..leading).filter(|group| !groups.contains(group)) {
            groups.push(group);
        }
    }
    groups.iter().map(|group| one_table(sweep, group, words)).collect()
}

fn one_table(sweep: &Sweep, group: &[String], words: &Words) -> String {
    let rest = &sweep.axes[group.len()..];
    let no_rows = [String::new()];
    let (row_name, row_values, column) = match rest {
        [column] => ("", &no_rows[..], column),
        [row, column, ..] => (&*row.name, &row.values[..], column),
        [] => return String::new(),
    };
    let shown = |value: f64| if sweep.unit == "ns" { time(value) } else { number(value) };
    let mut caption = format!(
        "<b>{}</b> {} <span>{}{}</span>",
        escape(&sweep.subject),
        escape(&sweep.workload),
        words.name("figure", &sweep.figure),
        if sweep.unit == "/s" { "/s" } else { "" }
    );
    for (axis, value) in sweep.axes.iter().zip(group) {
        let _infallible = write!(caption, ", {} {}", escape(&axis.name), escape(value));
    }
    let heads: String = column
        .values
        .iter()
        .map(|value| format!("<th scope=\"col\">{}</th>", escape(value)))
        .collect();
    let mut markup = format!(
        "<figure class=\"sweep\"><figcaption>{caption}</figcaption><div class=\"wide\" tabindex=\"0\"><table>\
         <thead><tr><th>{} \\ {}</th>{heads}</tr></thead><tbody>\n",
        escape(row_name),
        escape(&column.name)
    );
    for row_value in row_values {
        let _infallible = write!(markup, "<tr><th scope=\"row\">{}</th>", escape(row_value));
        for column_value in &column.values {
            let mut wanted = group.to_vec();
            if rest.len() > 1 {
                wanted.push(row_value.clone());
            }
            wanted.push(column_value.clone());
            let found = sweep.cells.iter().find(|(cell, _)| *cell == wanted);
            let value = found.and_then(|(_, value)| value.as_ref());
            let is_best = sweep.best.as_ref() == Some(&wanted);
            markup += &colored(sweep, value, is_best, &shown);
        }
        markup += "</tr>\n";
    }
    markup + "</tbody></table></div></figure>\n"
}

fn colored(
    sweep: &Sweep,
    value: Option<&Measured>,
    is_best: bool,
    shown: &dyn Fn(f64) -> String,
) -> String {
    let Some(value) = value else { return "<td class=\"none\">\u{2013}</td>".to_owned() };
    let medians = sweep.cells.iter().filter_map(|(_, value)| Some(value.as_ref()?.median));
    let (low, high) = medians.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), median| {
        (low.min(median), high.max(median))
    });
    let part = if high > low { (value.median - low) / (high - low) } else { 1.0 };
    let part = if sweep.more_is_better { part } else { 1.0 - part };
    let mut class = if part > STRONG_PART { "strong".to_owned() } else { String::new() };
    if is_best {
        class += " best";
    }
    format!(
        "<td class=\"{class}\" style=\"--part:{:.1}%\" title=\"{} \u{2013} {}\">{}</td>",
        100.0 * part,
        shown(value.min),
        shown(value.max),
        shown(value.median)
    )
}
