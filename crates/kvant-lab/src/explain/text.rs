//! An explanation as text for a terminal.

use super::model::{Explanation, Ground, Row};
use super::verdict::interval;
use super::words::{percent, span, time};
use std::fmt::Write;

/// Shares below this part are not shown.
const PART_MIN: f64 = 0.005;

/// The explanation as text.
pub fn text(explanation: &Explanation) -> String {
    let mut text = format!("{}, {}\n", explanation.source, span(explanation));
    for sentence in &explanation.verdict {
        text += &format!("\n{sentence}\n");
    }
    for warning in &explanation.warnings {
        text += &format!("\nnote: {warning}\n");
    }
    let mut operation = "";
    for row in &explanation.rows {
        if row.operation != operation {
            operation = &row.operation;
            text += &format!("\n{operation}: {} requests\n", row.count);
        }
        text += &row_text(explanation, row);
    }
    if !explanation.effects.is_empty() {
        text += "\nWhat making suspects happen changed\n";
    }
    for effect in &explanation.effects {
        text += &format!(
            "  {:<11} {:<8} p{:<5} {:>9}  {}\n",
            effect.suspect.name(),
            effect.operation,
            effect.percent,
            effect.control_text(),
            effect.words()
        );
    }
    if !explanation.cpu.is_empty() {
        text +=
            "\nCPU time of the server, in per cent of a CPU: seconds with slow requests, others\n";
    }
    for used in &explanation.cpu {
        text += &format!(
            "  {:<20} {:>7} {:>7}\n",
            used.purpose,
            percent(used.slow),
            percent(used.calm)
        );
    }
    if !explanation.moments.is_empty() {
        text += "\nThe slowest requests\n";
    }
    for (index, moment) in explanation.moments.iter().enumerate() {
        text += &format!("{:>4}. {}\n", index + 1, moment.sentence);
    }
    text
}

fn row_text(explanation: &Explanation, row: &Row) -> String {
    let mut text = format!(
        "  p{:<5} {:>9}  undisturbed {:>9}  excess {:>9}\n",
        row.percent,
        time(row.value_ns),
        time(row.level_ns),
        time(row.excess_ns)
    );
    for share in explanation.told_shares(row).iter().filter(|share| share.part >= PART_MIN) {
        let ground = match (share.ground, explanation.effect_of(row, share)) {
            (Ground::Direct, _) => " (the requests waited for it)".to_owned(),
            (_, Some(effect)) => format!(" ({})", effect.words()),
            (Ground::Coincidence, None) => " (coincides)".to_owned(),
            (Ground::Rest, None) => String::new(),
        };
        let or: String = share.or.iter().map(|other| format!(" or {}", other.words())).collect();
        let _infallible = writeln!(
            text,
            "      {:>6} [{:>9}]  {}{or}{ground}",
            percent(share.part),
            interval(share),
            share.cause.words()
        );
    }
    text
}
