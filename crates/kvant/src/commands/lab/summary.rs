//! The figures of a report as text: verdict, warnings, and a row for each case.

use kvant_lab::model::{Figures, Measured, Report, Text};
use kvant_lab::record::Case;
use kvant_lab::report::Language;
use kvant_load::units::format_time_ns;

/// The text.
pub(super) fn text(report: &Report, language: Language) -> String {
    let words = |text: &Text| match language {
        Language::English => text.en.clone(),
        Language::Russian => text.ru.clone(),
    };
    let mut text = format!("{}\n", report.run.title);
    for sentence in report.verdict.iter().chain(&report.warnings) {
        text += &format!("  {}\n", words(sentence));
    }
    for maximum in &report.maxima {
        let rate = maximum.rate_per_s.map_or("none".to_owned(), |rate| range(&rate));
        let limit = &maximum.limit;
        text +=
            &format!("  {:<48} {rate} requests/s, limit: {limit}\n", name(report, maximum.case));
    }
    if report.figures.is_empty() {
        return text;
    }
    text += &format!(
        "  {:<48} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8}\n",
        "case", "achieved", "p50", "p99", "p99.9", "max", "CPU/req", "attempts"
    );
    report.figures.iter().for_each(|figures| text += &row(report, figures));
    text
}

fn row(report: &Report, figures: &Figures) -> String {
    let name = format!("{} {}", name(report, figures.case), figures.step);
    let mut row = format!("  {:<48} {:>10.0}", name.trim_end(), figures.achieved_per_s.median);
    for percentile in ["p50", "p99", "p99.9", "max"] {
        let found = figures.response_ns.iter().find(|(known, _)| known == percentile);
        row += &format!(" {:>9}", found.map_or("-".to_owned(), |(_, value)| time(value)));
    }
    let cpu = figures.cpu_per_request_ns.as_ref().map_or("-".to_owned(), time);
    row + &format!(" {cpu:>10} {:>8}\n", figures.attempts.len())
}

fn time(measured: &Measured) -> String {
    format_time_ns(measured.median.round() as u64)
}

fn range(measured: &Measured) -> String {
    match measured.count {
        1 => format!("{:.0}", measured.median),
        _ => format!("{:.0} ({:.0} .. {:.0})", measured.median, measured.min, measured.max),
    }
}

/// `SUBJECT WORKLOAD PHASE CELL`.
fn name(report: &Report, id: usize) -> String {
    let Case { subject, workload, phase, cell, .. } = report.case(id);
    let cell = cell.iter().filter(|value| !value.is_empty()).map(String::as_str);
    let parts = [subject.as_str(), workload, phase].into_iter().chain(cell);
    parts.collect::<Vec<&str>>().join(" ")
}
