//! The page of an explanation: [`crate::explain`].
//!
//! Invariants:
//! 1. The page loads nothing and has no script: it can be read in a mail, printed and kept.
//! 2. Every figure of a picture is in its text as well.

mod chart;
mod colors;

use super::markup::{escape, inline, table};
use super::numbers::{number, time};
use crate::explain::intervention::Effect;
use crate::explain::model::{Cause, CpuUse, Explanation, Ground, Moment, Row, Share};
use crate::explain::words::{percent, span};
use colors::Colors;
use kvant_profiler::render::front;

const TEMPLATE: &str = include_str!("explanation/page.html");
const REPORT_STYLE: &str = include_str!("style.css");
const STYLE: &str = include_str!("explanation/style.css");
/// Shares below this part have no line of their own.
const PART_MIN: f64 = 0.005;

/// The page.
pub fn explanation(explanation: &Explanation) -> String {
    let colors = Colors::new(explanation);
    let title = format!("Kvant explains {}", escape(&explanation.source));
    let sections = [
        ("overview", "What happened", overview(explanation, &colors)),
        ("shares", "Where the tail comes from", rows(explanation, &colors)),
        ("interventions", "What making suspects happen changed", effects(explanation)),
        ("cpu", "What the server did meanwhile", cpu(explanation)),
        ("moments", "The slowest requests", moments(explanation, &colors)),
    ];
    let (mut links, mut content) = (String::new(), verdict(explanation));
    for (id, name, body) in sections.iter().filter(|(_, _, body)| !body.is_empty()) {
        links += &format!("<a href=\"#{id}\">{name}</a>");
        content += &format!("<section id=\"{id}\"><h2>{name}</h2>\n{body}</section>\n");
    }
    let style = [front::STYLE, REPORT_STYLE, STYLE].concat();
    let parts = [
        ("TITLE", title.as_str()),
        ("/*STYLE*/", &style),
        ("<!--LINKS-->", &links),
        ("<!--CONTENT-->", &content),
    ];
    front::fill(TEMPLATE, &parts)
}

fn verdict(explanation: &Explanation) -> String {
    let sentences: String = explanation
        .verdict
        .iter()
        .map(|sentence| format!("<p>{}</p>\n", inline(sentence)))
        .collect();
    let warnings: String = explanation
        .warnings
        .iter()
        .map(|warning| format!("<li>{}</li>\n", escape(warning)))
        .collect();
    let warnings = match warnings.as_str() {
        "" => String::new(),
        items => format!(
            "<div class=\"warnings\"><h3>What limits the trust in this</h3><ul>\n{items}</ul></div>\n"
        ),
    };
    format!(
        "<section id=\"verdict\"><h1>{}</h1>\n<p class=\"facts\">{}<i>\u{b7}</i>{}</p>\n\
         <div class=\"sentences\">\n{sentences}</div>\n{warnings}</section>\n",
        escape(&explanation.source),
        escape(&span(explanation)),
        escape(&time(explanation.length_ns as f64)),
    )
}

fn overview(explanation: &Explanation, colors: &Colors) -> String {
    if explanation.overview.counts.is_empty() {
        return String::new();
    }
    let overview = &explanation.overview;
    let requests: u64 = overview.counts.iter().sum();
    format!(
        "<p class=\"note\">Response times of {} \
         requests, a column for each {}: the median, the 99th percentile and the longest. Below \
         them, how many came, and what else happened.</p>\n<div class=\"wide\">{}</div>\n",
        number(requests as f64),
        time(overview.column_ns as f64),
        chart::overview(explanation, colors)
    )
}

fn rows(explanation: &Explanation, colors: &Colors) -> String {
    if explanation.rows.is_empty() {
        return String::new();
    }
    let mut content = String::new();
    let mut operation = "";
    for row in &explanation.rows {
        if row.operation != operation {
            operation = &row.operation;
            content += &format!(
                "<h3>{}<small>{} requests</small></h3>\n",
                escape(operation),
                number(row.count as f64)
            );
        }
        content += &row_markup(explanation, row, colors);
    }
    format!(
        "<p class=\"note\">Of each percentile: its undisturbed level, and what lies above it, shared out. The brackets are 95 % \
         intervals. <b>Waited for</b>: the requests themselves say so. <b>Coincides with</b>: slow \
         requests are there more often than by chance; that is no proof, which only an experiment \
         gives.</p>\n{content}"
    )
}

fn row_markup(explanation: &Explanation, row: &Row, colors: &Colors) -> String {
    let level = 100.0 * row.level_ns as f64 / row.value_ns.max(1) as f64;
    let is_shown = |share: &&Share| share.part >= PART_MIN;
    let mut bar =
        format!("<span class=\"level\" style=\"width:{level:.2}%\" title=\"undisturbed\"></span>");
    for share in row.shares.iter().filter(is_shown) {
        let name = share.cause.words();
        let color = colors.of(&name);
        let width = share.part * (100.0 - level);
        bar += &format!(
            "<span style=\"width:{width:.2}%;background:{color}\" title=\"{}\"></span>",
            escape(&name)
        );
    }
    let mut items = String::new();
    for share in explanation.told_shares(row).iter().filter(is_shown) {
        let key = |cause: &Cause| {
            let color = colors.of(&cause.words());
            format!("<i class=\"key\" style=\"background:{color}\"></i>")
        };
        let keys: String = std::iter::once(&share.cause).chain(&share.or).map(key).collect();
        items += &format!(
            "<li>{keys}<b>{}</b> <small>[{:.0} to {:.0}]</small> {}{}</li>\n",
            percent(share.part),
            share.low * 100.0,
            share.high * 100.0,
            ground(explanation, row, share),
            escape(&share.or.iter().map(|or| format!(" or {}", or.words())).collect::<String>())
        );
    }
    if row.excess_ns == 0 {
        items =
            "<li class=\"faint\">as at all times: nothing above the undisturbed level</li>".into();
    }
    format!(
        "<div class=\"tail\"><div class=\"figures\"><b>p{}</b><strong>{}</strong><small>undisturbed \
         {}</small><small>{} slower</small></div><div><div class=\"stack\" role=\"img\" \
         aria-label=\"shares\">{bar}</div><ul>{items}</ul></div></div>\n",
        row.percent,
        time(row.value_ns as f64),
        time(row.level_ns as f64),
        row.tail_count
    )
}

fn ground(explanation: &Explanation, row: &Row, share: &Share) -> String {
    let name = escape(&share.cause.words());
    match (share.ground, explanation.effect_of(row, share)) {
        (Ground::Direct, _) => format!("waited for <b>{name}</b>"),
        (_, Some(effect)) => {
            format!("coincides with <b>{name}</b>: <b>{}</b>", escape(&effect.words()))
        }
        (Ground::Coincidence, None) => format!("coincides with <b>{name}</b>"),
        (Ground::Rest, None) => name,
    }
}

fn effects(explanation: &Explanation) -> String {
    if explanation.effects.is_empty() {
        return String::new();
    }
    let heads = ["suspect", "operation", "percentile", "without it", "what is claimed"];
    let heads = heads.map(|head| ("words", head.to_owned()));
    let row = |effect: &Effect| {
        format!(
            "<tr><td class=\"words\">{}</td><td class=\"words\">{}</td><td class=\"words\">p{}</td>\
             <td class=\"words\">{}</td><td class=\"words\">{}</td></tr>\n",
            effect.suspect.name(),
            escape(&effect.operation),
            effect.percent,
            escape(&effect.control_text()),
            escape(&effect.words())
        )
    };
    let rows: Vec<String> = explanation.effects.iter().map(row).collect();
    format!(
        "<p class=\"note\">Of all attempts of the experiment together: each suspect was made to happen \
         at random moments, and compared with moments at which nothing was done. All intervals hold \
         together in 99 of 100 experiments.</p>\n{}",
        table("", &heads, &rows)
    )
}

fn cpu(explanation: &Explanation) -> String {
    if explanation.cpu.is_empty() {
        return String::new();
    }
    let heads = [("words", "used for"), ("", "slow seconds"), ("", "other seconds")];
    let heads = heads.map(|(class, head)| (class, head.to_owned()));
    let row = |used: &CpuUse| {
        format!(
            "<tr><td class=\"words\">{}</td><td>{}</td><td>{}</td></tr>\n",
            escape(&used.purpose),
            percent(used.slow),
            percent(used.calm)
        )
    };
    let rows: Vec<String> = explanation.cpu.iter().map(row).collect();
    format!(
        "<p class=\"note\">CPU time, in \
         per cent of a CPU, from samples: in seconds with slow requests, and in the others. It says \
         what a queue was behind, not that requests waited for it.</p>\n{}",
        table("", &heads, &rows)
    )
}

fn moments(explanation: &Explanation, colors: &Colors) -> String {
    if explanation.moments.is_empty() {
        return String::new();
    }
    let of = |moment: &Moment| {
        format!("<li><p>{}</p>\n{}</li>\n", inline(&moment.sentence), chart::moment(moment, colors))
    };
    let items: String = explanation.moments.iter().map(of).collect();
    format!(
        "<p class=\"note\">At most three of \
         one second. The wide bar is the request with its phases, the narrow ones are what happened \
         around it.</p>\n<ol>\n{items}</ol>"
    )
}
