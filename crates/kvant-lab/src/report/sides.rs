//! The comparison of two sides: assertions, ratios with their intervals, pages of differences.

use super::markup::{Words, both, escape, note, section, table};
use super::numbers::{bytes, number, time};
use crate::comparison::assertion::{Decision, Figure};
use crate::model::{Asserted, Compared, Report, Sides, Text};

/// Ends of the axis: the first one that no interval leaves.
const AXIS_ENDS: [f64; 7] = [1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 5.0];

/// The section; empty for a run that compares no two sides.
pub(super) fn sides(report: &Report, words: &Words) -> String {
    let Some(sides) = &report.sides else { return String::new() };
    let (whole, layers): (Vec<&Compared>, Vec<&Compared>) =
        sides.figures.iter().partition(|one| one.layer.is_empty());
    let mut content = format!("<dl>\n{}</dl>\n{}", facts(sides, words), note("sides.note", words));
    if !sides.assertions.is_empty() {
        content += &assertions(sides, words);
    }
    content += &figures(&whole, words);
    if !layers.is_empty() {
        content += &format!(
            "<details><summary>{} ({})</summary>\n{}</details>\n",
            words.say("sides.layers"),
            layers.len(),
            figures(&layers, words)
        );
    }
    let links: String = sides
        .flames
        .iter()
        .map(|pair| {
            let (page, case) = (escape(&pair.page), escape(&pair.case));
            format!("<li><a href=\"{page}\">{case}</a></li>\n")
        })
        .collect();
    if !links.is_empty() {
        content += &format!("<h3>{}</h3><ul>\n{links}</ul>\n", words.say("sides.flames"));
    }
    section("sides", words, &content)
}

fn facts(sides: &Sides, words: &Words) -> String {
    let fact =
        |name: &str, value: &str| format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(value));
    fact("A", &sides.a)
        + &fact("B", &sides.b)
        + &fact(&words.say("sides.blocks"), &sides.block_count.to_string())
        + &fact(&words.say("sides.confidence"), &format!("{:.0} %", 100.0 * sides.confidence))
        + &fact(&words.say("sides.seed"), &sides.seed.to_string())
}

fn assertions(sides: &Sides, words: &Words) -> String {
    let heads = [
        ("words", words.say("sides.assertion")),
        ("words", words.say("case")),
        ("", words.say("sides.ratio")),
        ("words", String::new()),
    ];
    let row = |one: &Asserted| {
        let tone = match one.decision {
            Decision::Holds => "good",
            Decision::Violated => "bad",
            Decision::Undecided => "open",
        };
        format!(
            "<tr><td class=\"words\"><code>{}</code></td><td class=\"words name\">{}</td><td>{}</td>\
             <td class=\"words\"><b class=\"decision {tone}\">{}</b></td></tr>\n",
            escape(&one.text),
            escape(&one.case),
            ratio(one.ratio, one.interval),
            words.say(&format!("sides.{}", one.decision.name()))
        )
    };
    table("", &heads, &sides.assertions.iter().map(row).collect::<Vec<_>>())
}

fn figures(figures: &[&Compared], words: &Words) -> String {
    let ends = figures.iter().filter_map(|one| one.interval).flat_map(|(low, high)| [low, high]);
    let farthest = ends.map(|end| end.max(1e-9).ln().abs()).fold(0.0, f64::max);
    let end = AXIS_ENDS.into_iter().find(|end| end.ln() >= farthest).unwrap_or(AXIS_ENDS[6]);
    let heads = [
        ("words", words.say("case")),
        ("words", words.say("comparisons.figure")),
        ("", "A".to_owned()),
        ("", "B".to_owned()),
        ("", words.say("sides.ratio")),
        ("words axis", format!("<span>{:.2}</span><span>1</span><span>{end:.2}</span>", 1.0 / end)),
        ("words", words.say("sides.claim")),
    ];
    let row = |one: &&Compared| {
        let value = |value: Option<f64>| {
            value.map_or("\u{2013}".to_owned(), |value| shown(one.figure, value))
        };
        let tone = match one.is_b_better() {
            Some(true) => "better",
            Some(false) => "worse",
            None => "same",
        };
        let mark = one.interval.zip(one.ratio).map_or_else(String::new, |((low, high), at)| {
            let [low, high, at] = [low, high, at].map(|ratio| place(ratio, end));
            format!(
                "<span class=\"ratio {tone}\" style=\"--low:{low:.1}%;--high:{high:.1}%;--at:{at:.1}%\"></span>"
            )
        });
        let layer = match one.layer.as_str() {
            "" => String::new(),
            layer => format!("<small>{}</small>", escape(layer)),
        };
        format!(
            "<tr><td class=\"words name\">{}{layer}</td><td class=\"words\">{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td class=\"words\">{mark}</td><td class=\"words claim {tone}\">{}<small>{}</small></td></tr>\n",
            escape(&one.case()),
            words.name("sides.figure", one.figure.name()),
            value(one.a),
            value(one.b),
            ratio(one.ratio, one.interval),
            both(&one.claim()),
            both(&blocks(one.block_count))
        )
    };
    table("", &heads, &figures.iter().map(row).collect::<Vec<_>>())
}

fn blocks(count: usize) -> Text {
    Text { en: format!("blocks: {count}"), ru: format!("блоков: {count}") }
}

fn ratio(ratio: Option<f64>, interval: Option<(f64, f64)>) -> String {
    let interval = interval.map_or_else(String::new, |(low, high)| {
        format!("<small>{low:.3} \u{2013} {high:.3}</small>")
    });
    ratio.map_or("\u{2013}".to_owned(), |ratio| format!("{ratio:.3}{interval}"))
}

fn shown(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Rate => format!("{}/s", number(value)),
        Figure::Written | Figure::Allocated => bytes(value),
        _ => time(value),
    }
}

/// The place of a ratio on a logarithmic axis from `1 / end` to `end`, in per cent.
fn place(ratio: f64, end: f64) -> f64 {
    (50.0 + 50.0 * ratio.max(1e-9).ln() / end.ln()).clamp(0.0, 100.0)
}
