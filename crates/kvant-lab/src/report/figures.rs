//! Tables of figures: of each case, of pairs of servers, and known ones beside ours.

use super::markup::{Words, case_text, cell_text, escape, note, section, table};
use super::numbers::{bytes, cell, number, percent, time};
use crate::model::{Comparison, Figures, Measured, OpFigures, Report};

/// The percentiles of the table.
const PERCENTILES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

/// The figures of all cases.
pub(super) fn figures(report: &Report, words: &Words) -> String {
    if report.figures.is_empty() {
        return String::new();
    }
    let mut heads = vec![
        ("words", words.say("case")),
        ("", words.say("figures.planned")),
        ("", words.say("figures.achieved")),
        ("", words.say("figures.errors")),
    ];
    heads.extend(PERCENTILES.map(|name| ("", name.to_owned())));
    let others = ["cpu", "cpu_later", "memory", "disk", "amplification", "switches", "repeats"];
    heads.extend(others.map(|name| ("", words.say(&format!("figures.{name}")))));
    let rows: Vec<String> =
        report.figures.iter().map(|figures| row(report, figures, words)).collect();
    let filter = "<div class=\"toolbar scripted\" id=\"figure-tools\" hidden></div>\n";
    let content = note("figures.note", words) + filter + &table("tall", &heads, &rows);
    section("figures", words, &content)
}

fn row(report: &Report, figures: &Figures, words: &Words) -> String {
    let case = report.case(figures.case);
    let percentiles = PERCENTILES.map(|name| {
        let found = figures.response_ns.iter().find(|(known, _)| known == name);
        cell(found.map(|(_, measured)| measured), time)
    });
    let disturbed = match figures.disturbed {
        0 => String::new(),
        count => format!("<small>{count} {}</small>", words.say("figures.disturbed")),
    };
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
        cell(Some(&figures.errors_part), percent),
        percentiles.concat(),
        cell(figures.cpu_per_request_ns.as_ref(), time),
        cell(figures.cpu_with_later_work_ns.as_ref(), time),
        cell(figures.rss_max_bytes.as_ref(), bytes),
        cell(figures.disk_written_per_request_bytes.as_ref(), bytes),
        cell(figures.write_amplification.as_ref(), number),
        cell(figures.switches_per_request.as_ref(), number),
    ];
    let main = format!(
        "<tr{id} data-case=\"{}\"><td class=\"words name\">{}</td>{}<td>{}{disturbed}</td></tr>\n",
        figures.case,
        case_text(report, case, &figures.step),
        cells.concat(),
        figures.attempts.len()
    );
    main + &figures.ops.iter().map(operation).collect::<String>()
}

/// An operation of a mixed workload, below its case.
fn operation(operation: &OpFigures) -> String {
    let statuses = operation
        .statuses
        .iter()
        .map(|(status, count)| format!("{status}: {}", number(*count as f64)));
    format!(
        "<tr class=\"part\"><td class=\"words name\">{}<small>{}</small></td><td></td>{}<td></td>{}<td></td>{}{}\
         <td colspan=\"8\"></td></tr>\n",
        escape(&operation.name),
        escape(&statuses.collect::<Vec<_>>().join(", ")),
        cell(Some(&operation.achieved_per_s), number),
        cell(Some(&operation.p50_ns), time),
        cell(Some(&operation.p99_ns), time),
        cell(Some(&operation.p999_ns), time),
    )
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
        ("words axis", "<span>\u{bd}</span><span>1</span><span>2</span>".to_owned()),
        ("words", String::new()),
    ];
    let rows = report.comparisons.iter().map(|comparison| {
        let where_ = cell_text(report, &comparison.cell);
        let Measured { median, min, max, .. } = comparison.ratio;
        format!(
            "<tr><td class=\"words name\"><b>{}</b> : {}</td><td class=\"words name\">{}<small>{}{}</small></td>\
             <td class=\"words\">{}</td><td>{median:.3}<small>{min:.2} \u{2013} {max:.2}</small></td>\
             <td class=\"words\"><span class=\"ratio {}\" style=\"--low:{:.1}%;--high:{:.1}%;--at:{:.1}%\"></span></td>\
             <td class=\"words\">{}</td></tr>\n",
            escape(&comparison.other),
            escape(&comparison.base),
            escape(&comparison.workload),
            escape(&comparison.phase),
            if where_.is_empty() { where_ } else { format!(" \u{b7} {where_}") },
            words.name("figure", &comparison.figure),
            judgement(comparison),
            place(min),
            place(max),
            place(median),
            words.say(&format!("comparisons.{}", judgement(comparison)))
        )
    });
    let content = note("comparisons.note", words) + &table("", &heads, &rows.collect::<Vec<_>>());
    section("comparisons", words, &content)
}

/// Whether the other server is better. A range that contains 1 says nothing.
fn judgement(comparison: &Comparison) -> &'static str {
    let Measured { min, max, .. } = comparison.ratio;
    let more_is_better = matches!(&*comparison.figure, "rate_max" | "achieved");
    match (min > 1.0, max < 1.0) {
        (false, false) => "same",
        (is_more, _) if is_more == more_is_better => "better",
        _ => "worse",
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
