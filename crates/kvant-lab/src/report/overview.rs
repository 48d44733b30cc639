//! The head of the page: bar, verdict, warnings, environment, and what curves need without a
//! script.

use super::markup::{Words, both, case_text, cell_text, escape, note, section, table};
use super::numbers::number;
use crate::model::{Maximum, Report};
use crate::record::{AttemptVerdict, RunState};
use kvant_base::timestamp;
use std::collections::BTreeMap;

/// The bar: name, links to the sections that exist, switches.
pub(super) fn bar(report: &Report, words: &Words) -> String {
    let sections = [
        ("verdict", true),
        ("sides", report.sides.is_some()),
        ("interventions", report.interventions.is_some()),
        ("what-if", report.what_if.is_some()),
        ("curves", !report.curves.is_empty() || !report.maxima.is_empty()),
        ("spectra", !report.spectra.is_empty()),
        ("figures", !report.figures.is_empty()),
        ("sweeps", !report.sweeps.is_empty()),
        ("times", !report.time_lines.is_empty()),
        ("layers", !report.layers.is_empty()),
        ("observations", !report.observations.is_empty()),
        ("wrk2", !report.wrk2.is_empty()),
        ("files", !report.files.is_empty()),
    ];
    let links: String = sections
        .iter()
        .filter(|(_, exists)| *exists)
        .map(|(id, _)| format!("<a href=\"#{id}\">{}</a>", words.say(id)))
        .collect();
    format!(
        "<a class=\"skip\" href=\"#report\">{}</a>\n<header id=\"bar\"><span class=\"brand\">{}</span>\
         <nav data-label=\"nav.aria\">{links}</nav><span id=\"switches\"></span></header>\n",
        words.say("skip"),
        words.say("brand")
    )
}

/// The result, the highest rates, and what limits the trust in them.
pub(super) fn verdict(report: &Report, words: &Words) -> String {
    let run = &report.run;
    let mut facts = vec![format!("<code>{}</code>", escape(&run.plan))];
    facts.push(escape(&minute(run.started_wall_ms)));
    if let Some(ended_ms) = run.ended_wall_ms {
        let minutes = ended_ms.saturating_sub(run.started_wall_ms) as f64 / 60_000.0;
        facts.push(format!("{minutes:.0} {}", words.say("minutes")));
    }
    let counted = report.attempts.iter().filter(|one| one.verdict == AttemptVerdict::Valid).count();
    facts.push(format!("{counted} / {} {}", report.attempts.len(), words.say("attempts")));
    facts.push(match &run.state {
        RunState::Running => words.say("state.running"),
        RunState::Complete => words.say("state.complete"),
        RunState::Interrupted { reason } => {
            format!("{}: {}", words.say("state.interrupted"), escape(reason))
        }
    });
    let title = if run.title.is_empty() { &run.plan } else { &run.title };
    let sentences: String =
        report.verdict.iter().map(|text| format!("<p>{}</p>\n", both(text))).collect();
    let mut markup = format!(
        "<section id=\"verdict\"><h1>{}</h1>\n<p class=\"facts\">{}</p>\n<div class=\"sentences\">{sentences}</div>\n{}",
        escape(title),
        facts.join("<i>\u{b7}</i>"),
        tiles(report, words)
    );
    if !report.warnings.is_empty() {
        let items: String =
            report.warnings.iter().map(|text| format!("<li>{}</li>\n", both(text))).collect();
        markup += &format!(
            "<aside class=\"warnings\"><h3>{}</h3><ul>\n{items}</ul></aside>\n",
            words.say("warnings")
        );
    }
    markup
        + "<noscript><p class=\"note\">"
        + &words.say("without_script")
        + "</p></noscript></section>\n"
}

/// A wall time without seconds.
fn minute(wall_ms: u64) -> String {
    let text = timestamp::format(wall_ms);
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("{date} {} UTC", time.get(..5).unwrap_or_default())
}

/// The best of the highest rates of each subject and workload.
fn tiles(report: &Report, words: &Words) -> String {
    let mut best: BTreeMap<(&str, &str), &Maximum> = BTreeMap::new();
    for maximum in &report.maxima {
        let case = report.case(maximum.case);
        let rate = |maximum: &Maximum| maximum.rate_per_s.map_or(0.0, |rate| rate.median);
        let known = best.entry((&case.workload, &case.subject)).or_insert(maximum);
        if rate(maximum) > rate(known) {
            *known = maximum;
        }
    }
    if best.is_empty() {
        return String::new();
    }
    let tile = |((workload, subject), maximum): (&(&str, &str), &&Maximum)| {
        let case = report.case(maximum.case);
        let number_text = match maximum.rate_per_s {
            Some(rate) => format!("<strong>{}<small>/s</small></strong>", number(rate.median)),
            None => format!("<strong class=\"none\">{}</strong>", words.say("tile.failed")),
        };
        let interval = maximum.interval_per_s.map_or_else(String::new, |(low, high)| {
            format!("<span>{} \u{2013} {}</span>", number(low), number(high))
        });
        let cell = match cell_text(report, &case.cell) {
            cell if cell.is_empty() => cell,
            cell => format!("<span>{} {cell}</span>", words.say("tile.with")),
        };
        format!(
            "<a class=\"tile\" href=\"#case-{}\" data-subject=\"{}\"><span class=\"subject\">{}</span><span>{}</span>\
             {number_text}{interval}{cell}</a>\n",
            case.id,
            escape(subject),
            escape(subject),
            escape(workload)
        )
    };
    format!(
        "<h3>{}</h3><div class=\"tiles\">\n{}</div>\n",
        words.say("tile.rate"),
        best.iter().map(tile).collect::<String>()
    )
}

/// Machine, placement, subjects, data.
pub(super) fn environment(report: &Report, words: &Words) -> String {
    if report.environment.is_empty() {
        return String::new();
    }
    let rows = report.environment.iter().map(|(name, value)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", both(name), escape(value))
    });
    section("environment", words, &format!("<dl>\n{}</dl>\n", rows.collect::<String>()))
}

/// The place of the curves, and the breaking points as a table.
pub(super) fn curves(report: &Report, words: &Words) -> String {
    if report.curves.is_empty() && report.maxima.is_empty() {
        return String::new();
    }
    let mut content = String::new();
    if !report.curves.is_empty() {
        content = format!(
            "<div class=\"scripted\" hidden>{}<div class=\"toolbar\" id=\"curve-tools\"></div>\n\
             <div class=\"pair\"><figure id=\"curve-latency\"></figure><figure id=\"curve-rate\"></figure></div>\n\
             <p class=\"legend\" id=\"curve-legend\"></p><div id=\"curve-law\"></div></div>\n",
            note("curves.note", words)
        );
    }
    if !report.maxima.is_empty() {
        let is_open = if report.maxima.len() <= 8 { " open" } else { "" };
        content += &format!(
            "<details{is_open}><summary>{} ({})</summary>\n{}</details>\n",
            words.say("maxima"),
            report.maxima.len(),
            maxima(report, words)
        );
    }
    section("curves", words, &content)
}

fn maxima(report: &Report, words: &Words) -> String {
    let heads = [
        ("words", words.say("case")),
        ("", words.say("maxima.rate")),
        ("", words.say("maxima.interval")),
        ("", words.say("maxima.saturation")),
        ("words", words.say("maxima.confirmed")),
        ("words", words.say("maxima.limit")),
        ("words", words.say("maxima.reasons")),
    ];
    let rows = report.maxima.iter().map(|maximum| {
        let case = report.case(maximum.case);
        let interval = maximum.interval_per_s.map_or_else(String::new, |(low, high)| {
            let kind = if maximum.is_interval_of_median { "median" } else { "bracket" };
            let kind = words.say(&format!("interval.{kind}"));
            format!("{} \u{2013} {}<small>{kind}</small>", number(low), number(high))
        });
        let is_confirmed = if maximum.is_confirmed { "yes" } else { "no" };
        format!(
            "<tr id=\"case-{}\"><td class=\"words name\">{}</td>{}<td>{interval}</td>{}<td class=\"words\">{}</td>\
             <td class=\"words\">{}</td><td class=\"words\">{}</td></tr>\n",
            case.id,
            case_text(report, case, ""),
            super::numbers::cell(maximum.rate_per_s.as_ref(), number),
            super::numbers::cell(maximum.saturation_per_s.as_ref(), number),
            words.say(is_confirmed),
            words.name("limit", &maximum.limit),
            escape(&maximum.reasons.join("; "))
        )
    });
    table("tall", &heads, &rows.collect::<Vec<_>>())
}

/// The place of the percentile spectra.
pub(super) fn spectra(report: &Report, words: &Words) -> String {
    if report.spectra.is_empty() {
        return String::new();
    }
    let content = format!(
        "<div class=\"scripted\" hidden>{}<div class=\"toolbar\" id=\"spectrum-tools\"></div>\n\
         <figure id=\"spectrum\"></figure><div id=\"spectrum-cases\" class=\"choices\"></div></div>\n",
        note("spectra.note", words)
    );
    section("spectra", words, &content)
}
