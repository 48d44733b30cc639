//! The time line's place, observations, wrk2's texts and raw files.

use super::markup::{Words, both, case_text, escape, note, section};
use crate::model::Report;

/// The place of the time line, of the selected range's figures and of its flame graph.
pub(super) fn time_line(report: &Report, words: &Words) -> String {
    if report.time_lines.is_empty() {
        return String::new();
    }
    let content = format!(
        "<div class=\"scripted\" hidden>{}<div class=\"toolbar\" id=\"time-tools\"></div>\n\
         <p class=\"note\" id=\"time-left-out\"></p><div id=\"range\"></div><div id=\"time-rows\"></div>\n\
         <div id=\"flames\"></div></div>\n",
        note("times.note", words)
    );
    section("times", words, &content)
}

/// Findings with links to their cases.
pub(super) fn observations(report: &Report, words: &Words) -> String {
    if report.observations.is_empty() {
        return String::new();
    }
    let items = report.observations.iter().map(|observation| {
        let links: String = observation
            .cases
            .iter()
            .map(|&id| {
                let case = report.case(id);
                format!(
                    "<a href=\"#case-{id}\" data-case=\"{id}\">{} {} {}</a>",
                    escape(&case.subject),
                    escape(&case.workload),
                    escape(&case.phase)
                )
            })
            .collect();
        format!(
            "<li><p>{}</p><p class=\"links\"><code>{}</code>{links}</p></li>\n",
            both(&observation.text),
            escape(&observation.rule)
        )
    });
    section("observations", words, &format!("<ol>\n{}</ol>\n", items.collect::<String>()))
}

/// What wrk2 would have printed.
pub(super) fn wrk2(report: &Report, words: &Words) -> String {
    if report.wrk2.is_empty() {
        return String::new();
    }
    let blocks = report.wrk2.iter().map(|block| {
        format!(
            "<details><summary>{}</summary><div class=\"block\"><pre tabindex=\"0\">{}</pre></div></details>\n",
            case_text(report, report.case(block.case), ""),
            escape(&block.text)
        )
    });
    section("wrk2", words, &blocks.collect::<String>())
}

/// Links to files beside the page.
pub(super) fn files(report: &Report, words: &Words) -> String {
    if report.files.is_empty() {
        return String::new();
    }
    let items = report.files.iter().map(|file| {
        let file = escape(file);
        format!("<li><a href=\"{file}\">{file}</a></li>\n")
    });
    let content =
        format!("{}<ul>\n{}</ul>\n", note("files.note", words), items.collect::<String>());
    section("files", words, &content)
}
