//! The cost of a request by activity and stage.

use super::markup::{Words, case_text, escape, note, section, table};
use super::numbers::{bytes, time};
use crate::model::{LayerRow, Layers, Report};

/// A table for each case; the first is open.
pub(super) fn layers(report: &Report, words: &Words) -> String {
    if report.layers.is_empty() {
        return String::new();
    }
    let tables = report.layers.iter().enumerate().map(|(index, layers)| {
        let is_open = if index == 0 { " open" } else { "" };
        format!(
            "<details{is_open}><summary>{}</summary>\n{}</details>\n",
            case_text(report, report.case(layers.case), &layers.step),
            layer_table(layers, words)
        )
    });
    let content = note("layers.note", words) + &tables.collect::<String>();
    section("layers", words, &content)
}

fn layer_table(layers: &Layers, words: &Words) -> String {
    let heads = [
        ("words", words.say("layers.stage")),
        ("", words.say("layers.cpu")),
        ("words bars", String::new()),
        ("", words.say("layers.bytes")),
        ("words bars", String::new()),
        ("", words.say("layers.waits")),
        ("words", String::new()),
    ];
    let cpu_sum: f64 = layers.rows.iter().map(|row| row.cpu_ns).sum();
    let bytes_sum: f64 = layers.rows.iter().map(|row| row.allocated_bytes).sum();
    let waited = |row: &LayerRow| row.waits_ns.iter().map(|(_, ns)| ns).sum::<f64>();
    let most = |of: &dyn Fn(&LayerRow) -> f64| layers.rows.iter().map(of).fold(0.0, f64::max);
    let cpu_most = most(&|row| row.cpu_ns);
    let bytes_most = most(&|row| row.allocated_bytes);
    let amount = |value: f64, whole: f64, show: &dyn Fn(f64) -> String| {
        if value == 0.0 {
            return "<td class=\"zero\">\u{2013}</td>".to_owned();
        }
        format!("<td>{}<small>{:.1} %</small></td>", show(value), 100.0 * value / whole)
    };
    let bar = |value: f64, most: f64| {
        if value == 0.0 {
            return "<td></td>".to_owned();
        }
        let part = 100.0 * value / most;
        format!("<td class=\"words\"><span class=\"bar\" style=\"--part:{part:.1}%\"></span></td>")
    };
    let waits_sum: f64 = layers.rows.iter().map(waited).sum();
    let mut rows = vec![format!(
        "<tr class=\"total\"><td class=\"words\">{}</td>{}<td></td>{}<td></td>{}<td></td></tr>\n",
        words.say("layers.sum"),
        amount(cpu_sum, cpu_sum, &time),
        amount(bytes_sum, bytes_sum, &bytes),
        amount(waits_sum, waits_sum, &time)
    )];
    rows.extend(layers.rows.iter().map(|row| {
        let kinds: Vec<String> = row
            .waits_ns
            .iter()
            .map(|(kind, ns)| format!("{} {}", escape(kind), time(*ns)))
            .collect();
        let name = match (row.activity.as_str(), row.stage.as_str()) {
            ("none", "none") => words.say("layers.outside"),
            ("none", stage) => format!("<b>{}</b>", escape(stage)),
            (activity, "none") => format!("<b>{}</b>", escape(activity)),
            (activity, stage) => format!("<b>{}</b> {}", escape(activity), escape(stage)),
        };
        format!(
            "<tr><td class=\"words name\">{name}</td>{}{}{}{}{}<td class=\"words\">{}</td></tr>\n",
            amount(row.cpu_ns, cpu_sum, &time),
            bar(row.cpu_ns, cpu_most),
            amount(row.allocated_bytes, bytes_sum, &bytes),
            bar(row.allocated_bytes, bytes_most),
            amount(waited(row), waits_sum, &time),
            kinds.join(", ")
        )
    }));
    table("", &heads, &rows)
}
