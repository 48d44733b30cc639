//! The figures of a report as text: verdict, warnings, and a row for each case.

use kvant_lab::comparison::assertion::Figure;
use kvant_lab::model::{
    Figures, GainFigure, Interventions, Measured, Report, Sides, Text, WhatIf, finding_text,
};
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
    if let Some(sides) = &report.sides {
        return text + &of_sides(sides, &words);
    }
    if let Some(found) = &report.interventions {
        return text + &of_interventions(found, &words);
    }
    if let Some(found) = &report.what_if {
        return text + &of_what_if(report, found, &words);
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

/// Figures of the whole server, and assertions.
fn of_sides(sides: &Sides, words: &dyn Fn(&Text) -> String) -> String {
    let interval = |interval: Option<(f64, f64)>| {
        interval.map_or("-".to_owned(), |(low, high)| format!("{low:.3} .. {high:.3}"))
    };
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    let mut text = format!(
        "  {:<30} {:<10} {:>10} {:>10} {:>7} {:>16}\n",
        "case", "figure", "A", "B", "B/A", "interval"
    );
    for one in sides.figures.iter().filter(|one| one.layer.is_empty()) {
        let value = |value: Option<f64>| match (one.figure, value) {
            (_, None) => "-".to_owned(),
            (Figure::Rate, Some(value)) => format!("{value:.0}/s"),
            (Figure::Written | Figure::Allocated, Some(value)) => format!("{value:.0} B"),
            (_, Some(value)) => format_time_ns(value.round() as u64),
        };
        text += &format!(
            "  {:<30} {:<10} {:>10} {:>10} {:>7} {:>16}  {}\n",
            one.case(),
            one.figure.name(),
            value(one.a),
            value(one.b),
            ratio(one.ratio),
            interval(one.interval),
            words(&one.claim())
        );
    }
    for one in &sides.assertions {
        let case = if one.case.is_empty() { "nothing was measured" } else { &one.case };
        text +=
            &format!("  {:<10} {} ({case}: {})\n", one.decision.name(), one.text, ratio(one.ratio));
    }
    text
}

/// What making suspects happen changed.
fn of_interventions(found: &Interventions, words: &dyn Fn(&Text) -> String) -> String {
    let mut text = format!(
        "  {:<12} {:<10} {:>7} {:>11} {:>7}\n",
        "suspect", "operation", "figure", "without it", "blocks"
    );
    for effect in &found.effects {
        text += &format!(
            "  {:<12} {:<10} {:>7} {:>11} {:>7}  {}\n",
            effect.suspect.name(),
            effect.operation,
            format!("p{}", effect.percent),
            effect.control_text(),
            effect.block_count,
            words(&finding_text(effect))
        );
    }
    text
}

/// What faster stages would bring.
fn of_what_if(report: &Report, found: &WhatIf, words: &dyn Fn(&Text) -> String) -> String {
    let mut text = format!("  {:<24} {:<6} {:<10} {:>10}", "case", "figure", "stage", "as it is");
    for percent in &found.facts.percents {
        text += &format!("  {:<44}", format!("-{percent} %"));
    }
    for gains in &found.gains {
        let Case { workload, subject, .. } = report.case(gains.case);
        let phase = report.case(gains.case).planned_phase();
        let as_it_is = match gains.figure {
            GainFigure::Rate => format!("{:.0}/s", gains.as_it_is),
            GainFigure::P50 | GainFigure::P99 => format_time_ns(gains.as_it_is.round() as u64),
        };
        let place = format!("{subject} {workload} {phase}");
        let (figure, stage) = (gains.figure.name(), gains.stage.name());
        text = text.trim_end().to_owned();
        text += &format!("\n  {place:<24} {figure:<6} {stage:<10} {as_it_is:>10}");
        for change in &gains.changes {
            text += &format!("  {:<44}", words(&change.text()));
        }
    }
    text.trim_end().to_owned() + "\n"
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
