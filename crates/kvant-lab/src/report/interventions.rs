//! What making suspects happen changed: a table with intervals.

use super::markup::{Words, both, case_text, escape, note, section, table};
use super::numbers::time;
use crate::explain::intervention::{Effect, Finding};
use crate::model::{Interventions, Report, finding_text};

/// The section; empty for a run that makes nothing happen.
pub(super) fn interventions(report: &Report, words: &Words) -> String {
    let Some(found) = &report.interventions else { return String::new() };
    let heads = [
        ("words", words.say("case")),
        ("words", words.say("interventions.suspect")),
        ("words", words.say("interventions.operation")),
        ("", words.say("interventions.percentile")),
        ("", words.say("interventions.control")),
        ("", words.say("interventions.change")),
        ("words", words.say("interventions.finding")),
    ];
    let rows: Vec<String> = found.effects.iter().map(|effect| row(report, effect, words)).collect();
    let failures: String = found
        .failures
        .iter()
        .map(|(suspect, count, problem)| {
            format!("<li>{} ({count}): {}</li>\n", escape(suspect), escape(problem))
        })
        .collect();
    let failures = match failures.as_str() {
        "" => String::new(),
        items => {
            format!("<h3>{}</h3><ul>\n{items}</ul>\n", words.say("interventions.failures"))
        }
    };
    let content = format!(
        "<dl>\n{}</dl>\n{}{}{failures}",
        facts(found, words),
        note("interventions.note", words),
        table("", &heads, &rows)
    );
    section("interventions", words, &content)
}

fn facts(found: &Interventions, words: &Words) -> String {
    let fact = |key: &str, value: &str| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", words.say(key), escape(value))
    };
    fact("sides.blocks", &found.block_count.to_string())
        + &fact("interventions.window", &time(found.facts.window_ns as f64))
        + &fact("sides.confidence", &format!("{:.0} %", 100.0 * found.confidence))
        + &fact("sides.seed", &found.seed.to_string())
}

fn row(report: &Report, effect: &Effect, words: &Words) -> String {
    let [change, low, high, _] = effect.times();
    let tone = match effect.finding() {
        Finding::Cause => "worse",
        Finding::Relief => "better",
        Finding::Correlation | Finding::NoEffect | Finding::Unknown => "same",
    };
    let interval = effect.interval_ns.map_or_else(String::new, |_| {
        format!("<small>{} \u{2013} {}</small>", escape(&low), escape(&high))
    });
    let change = effect.change_ns.map_or("\u{2013}".to_owned(), |_| escape(&change));
    format!(
        "<tr><td class=\"words name\">{}</td><td class=\"words\">{}</td><td class=\"words\">{}</td>\
         <td>p{}</td><td>{}</td><td>{change}{interval}</td>\
         <td class=\"words claim {tone}\">{}<small>{}: {}</small></td></tr>\n",
        case_text(report, report.case(effect.case), ""),
        words.name("interventions.suspect", effect.suspect.name()),
        escape(&effect.operation),
        effect.percent,
        escape(&effect.control_text()),
        both(&finding_text(effect)),
        words.say("sides.blocks"),
        effect.block_count
    )
}
