//! Tables of figures: of each case, of pairs of servers, and known ones beside ours.

use super::markup::{Words, case_text, cell_text, escape, note, section, table};
use super::numbers::{bytes, cell, number, percent, time};
use crate::model::{Comparison, Figures, Measured, OpFigures, Report};

/// The percentiles of the table.
const PERCENTILES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

type Of = fn(&Figures) -> Option<&Measured>;
/// A column: word, figure, unit.
type Cost = (&'static str, Of, fn(f64) -> String);

const COSTS: [Cost; 7] = [
    ("cpu", |figures| figures.cpu_per_request_ns.as_ref(), time),
    ("cpu_later", |figures| figures.cpu_with_later_work_ns.as_ref(), time),
    ("generator", |figures| figures.generator_cpu_per_request_ns.as_ref(), time),
    ("memory", |figures| figures.rss_max_bytes.as_ref(), bytes),
    ("disk", |figures| figures.disk_written_per_request_bytes.as_ref(), bytes),
    ("amplification", |figures| figures.write_amplification.as_ref(), number),
    ("switches", |figures| figures.switches_per_request.as_ref(), number),
];

/// The figures of all cases. Costs that no case has are left out.
pub(super) fn figures(report: &Report, words: &Words) -> String {
    if report.figures.is_empty() {
        return String::new();
    }
    let has_cost = |of: Of| report.figures.iter().any(|figures| of(figures).is_some());
    let costs: Vec<_> = COSTS.into_iter().filter(|(_, of, _)| has_cost(*of)).collect();
    let mut heads = vec![("words", words.say("case"))];
    let rates = ["planned", "achieved", "goodput", "errors"];
    heads.extend(rates.map(|name| ("", words.say(&format!("figures.{name}")))));
    heads.extend(PERCENTILES.map(|name| ("", name.to_owned())));
    let names = costs.iter().map(|(name, _, _)| *name).chain(["repeats"]);
    heads.extend(names.map(|name| ("", words.say(&format!("figures.{name}")))));
    let row = |figures: &Figures| {
        let cells = costs.iter().map(|(_, of, show)| cell(of(figures), show));
        row(report, figures, &cells.collect::<String>(), words)
            + &operations(figures, costs.len() + 1)
    };
    let rows: Vec<String> = report.figures.iter().map(row).collect();
    let filter = "<div class=\"toolbar scripted\" id=\"figure-tools\" hidden></div>\n";
    let content = note("figures.note", words) + filter + &table("tall", &heads, &rows);
    section("figures", words, &content)
}

fn row(report: &Report, figures: &Figures, costs: &str, words: &Words) -> String {
    let case = report.case(figures.case);
    let percentiles = PERCENTILES.map(|name| cell(response(figures, name), time));
    let dropped = [(figures.disturbed, "disturbed"), (figures.failed, "failed")];
    let dropped = dropped.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| {
        format!("<small>{count} {}</small>", words.say(&format!("figures.{what}")))
    });
    // A search has no figures of its own row: its table of maxima has the anchor.
    let has_anchor = !report.maxima.iter().any(|maximum| maximum.case == figures.case);
    let id = if has_anchor && figures.step.is_empty() {
        format!(" id=\"case-{}\"", figures.case)
    } else {
        String::new()
    };
    let planned = figures.planned_per_s.map_or_else(
        || "<td class=\"zero\">\u{2013}</td>".to_owned(),
        |rate| format!("<td>{}</td>", number(rate)),
    );
    let cells = [
        planned,
        cell(Some(&figures.achieved_per_s), number),
        cell(Some(&figures.goodput_per_s), number),
        cell(Some(&figures.errors_part), percent),
        percentiles.concat(),
        costs.to_owned(),
    ];
    let statuses = match figures.ops.as_slice() {
        [only] => statuses(only),
        _ => String::new(),
    };
    format!(
        "<tr{id} data-case=\"{}\"><td class=\"words name\">{}{statuses}</td>{}<td>{}{}</td></tr>\n",
        figures.case,
        case_text(report, case, &figures.step),
        cells.concat(),
        figures.attempts.len(),
        dropped.collect::<String>()
    )
}

fn response<'a>(figures: &'a Figures, name: &str) -> Option<&'a Measured> {
    let found = figures.response_ns.iter().find(|(known, _)| known == name);
    found.map(|(_, measured)| measured)
}

fn statuses(operation: &OpFigures) -> String {
    let statuses = operation.statuses.iter();
    let parts = statuses.map(|(status, count)| format!("{status}: {}", number(*count as f64)));
    format!("<small>{}</small>", escape(&parts.collect::<Vec<_>>().join(", ")))
}

/// The operations of a mixed workload, below their case. Percentiles that are the generator's are
/// so for each of them. `rest` is the number of columns after the percentiles.
fn operations(figures: &Figures, rest: usize) -> String {
    if figures.ops.len() < 2 {
        return String::new();
    }
    let row = |operation: &OpFigures| {
        let of = |name: &str, measured| cell(response(figures, name).map(|_| measured), time);
        format!(
            "<tr class=\"part\"><td class=\"words name\">{}{}</td><td></td>{}<td></td><td></td>\
             {}<td></td>{}{}<td colspan=\"{}\"></td></tr>\n",
            escape(&operation.name),
            statuses(operation),
            cell(Some(&operation.achieved_per_s), number),
            of("p50", &operation.p50_ns),
            of("p99", &operation.p99_ns),
            of("p99.9", &operation.p999_ns),
            rest + 1
        )
    };
    figures.ops.iter().map(row).collect()
}

/// Ratios between servers, each drawn on an axis from a half to the double.
pub(super) fn comparisons(report: &Report, words: &Words) -> String {
    if report.comparisons.is_empty() {
        return String::new();
    }
    let heads = [
        ("words", words.say("comparisons.pair")),
        ("words", words.say("case")),
        ("words", words.say("comparisons.figure")),
        ("", words.say("comparisons.ratio")),
        ("", words.say("comparisons.repeats")),
        ("words axis", "<span>\u{bd}</span><span>1</span><span>2</span>".to_owned()),
        ("words", String::new()),
    ];
    let rows = report.comparisons.iter().map(|comparison| {
        let where_ = cell_text(report, &comparison.cell);
        let Measured { median, min, max, count } = comparison.ratio;
        let (is_interval, (low, high)) = match comparison.interval {
            Some(interval) => ("95 %: ", interval),
            None => ("", (min, max)),
        };
        let range = match count {
            1 => String::new(),
            _ => format!("<small>{is_interval}{low:.2} \u{2013} {high:.2}</small>"),
        };
        format!(
            "<tr><td class=\"words name\"><b>{}</b> : {}</td><td class=\"words name\">{}<small>{}{}</small></td>\
             <td class=\"words\">{}</td><td>{median:.3}{range}</td><td>{count}</td>\
             <td class=\"words\"><span class=\"ratio {}\" style=\"--low:{:.1}%;--high:{:.1}%;--at:{:.1}%\"></span></td>\
             <td class=\"words\">{}</td></tr>\n",
            escape(&comparison.other),
            escape(&comparison.base),
            escape(&comparison.workload),
            escape(&comparison.phase),
            if where_.is_empty() { where_ } else { format!(" \u{b7} {where_}") },
            words.name("figure", &comparison.figure),
            judgement(comparison),
            place(low),
            place(high),
            place(median),
            words.say(&format!("comparisons.{}", judgement(comparison)))
        )
    });
    let content = note("comparisons.note", words) + &table("", &heads, &rows.collect::<Vec<_>>());
    section("comparisons", words, &content)
}

/// Whether the other server is better, if the repeats tell.
fn judgement(comparison: &Comparison) -> &'static str {
    let more_is_better = matches!(&*comparison.figure, "rate_max" | "goodput");
    match comparison.difference() {
        _ if comparison.ratio.count < 2 => "once",
        None => "same",
        Some(is_more) if is_more == more_is_better => "better",
        Some(_) => "worse",
    }
}

/// The place of a ratio on the logarithmic axis, in per cent.
fn place(ratio: f64) -> f64 {
    (50.0 + 50.0 * ratio.max(1e-9).log2()).clamp(0.0, 100.0)
}

/// Figures of others.
pub(super) fn known(report: &Report, words: &Words) -> String {
    if report.known.is_empty() {
        return String::new();
    }
    let heads = [
        ("words", words.say("known.what")),
        ("words", words.say("comparisons.figure")),
        ("", words.say("known.theirs")),
        ("words", words.say("known.ours")),
        ("words", words.say("known.source")),
    ];
    let rows = report.known.iter().map(|row| {
        let ours = row.ours.iter().map(|(subject, value)| {
            let factor = if row.theirs > 0.0 {
                format!(" <small>\u{d7}{}</small>", number(value / row.theirs))
            } else {
                String::new()
            };
            format!(
                "<span class=\"ours\">{} <b>{}</b> {}{factor}</span>",
                escape(subject),
                number(*value),
                escape(&row.unit)
            )
        });
        let ours: String = ours.collect();
        format!(
            "<tr><td class=\"words name\">{}</td><td class=\"words\">{}</td><td>{} {}</td><td class=\"words\">{}</td>\
             <td class=\"words\">{}</td></tr>\n",
            escape(&row.what),
            words.name("figure", &row.figure),
            number(row.theirs),
            escape(&row.unit),
            if ours.is_empty() { words.say("known.absent") } else { ours },
            escape(&row.source)
        )
    });
    section("known", words, &table("", &heads, &rows.collect::<Vec<_>>()))
}
