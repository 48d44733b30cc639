//! What faster stages would bring: a table with intervals.

use super::markup::{Words, both, case_text, escape, note, section, table};
use super::numbers::{number, time};
use crate::model::{Change, GainFigure, Gains, Report, WhatIf};

/// The section; empty for a run that does not ask.
pub(super) fn what_if(report: &Report, words: &Words) -> String {
    let Some(found) = &report.what_if else { return String::new() };
    let mut heads = vec![
        ("words", words.say("case")),
        ("words", words.say("what-if.figure")),
        ("words", words.say("what-if.stage")),
        ("", words.say("what-if.as-it-is")),
    ];
    heads.extend(found.facts.percents.iter().map(|percent| ("", format!("-{percent} %"))));
    let rows: Vec<String> = found.gains.iter().map(|gains| row(report, gains, words)).collect();
    let failures: String = found
        .failures
        .iter()
        .map(|(stage, count, problem)| {
            format!("<li><code>{}</code> ({count}): {}</li>\n", escape(stage), escape(problem))
        })
        .collect();
    let failures = match failures.as_str() {
        "" => String::new(),
        items => format!("<h3>{}</h3><ul>\n{items}</ul>\n", words.say("what-if.failures")),
    };
    let content = format!(
        "<dl>\n{}</dl>\n{}{}{failures}",
        facts(found, words),
        note("what-if.note", words),
        table("", &heads, &rows)
    );
    section("what-if", words, &content)
}

fn facts(found: &WhatIf, words: &Words) -> String {
    let fact = |key: &str, value: &str| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", words.say(key), escape(value))
    };
    fact("sides.blocks", &found.block_count.to_string())
        + &fact("sides.confidence", &format!("{:.0} %", 100.0 * found.confidence))
        + &fact("sides.seed", &found.seed.to_string())
}

fn row(report: &Report, gains: &Gains, words: &Words) -> String {
    let as_it_is = match gains.figure {
        GainFigure::Rate => format!("{} /s", number(gains.as_it_is)),
        GainFigure::P50 | GainFigure::P99 => time(gains.as_it_is),
    };
    let changes: String = gains.changes.iter().map(|change| cell(gains, change, words)).collect();
    format!(
        "<tr><td class=\"words name\">{}</td><td class=\"words\">{}</td>\
         <td class=\"words\"><code>{}</code></td><td>{as_it_is}</td>{changes}</tr>\n",
        case_text(report, report.case(gains.case), ""),
        words.name("what-if.figure", gains.figure.name()),
        escape(gains.stage.name()),
    )
}

fn cell(gains: &Gains, change: &Change, words: &Words) -> String {
    let tone = match () {
        () if gains.is_shown(change) => "better",
        () if change.is_open() => "same",
        () => "worse",
    };
    format!(
        "<td class=\"claim {tone}\">{}<small>{}: {}</small></td>",
        both(&change.text()),
        words.say("sides.blocks"),
        change.block_count
    )
}
