//! Sentences by rule: verdict, warnings, observations. Each states figures of the report and
//! nothing that it does not have.

use super::figures::PERCENTILES;
use super::units::{digits, rate, time};
use crate::model::{Comparison, Figures, Maximum, Observation, Report, Sweep, Text};
use crate::record::{AttemptVerdict, Case, RunState};

/// Cases that a warning names.
const CASES_NAMED_MAX: usize = 4;
/// Sentences of a verdict.
const VERDICT_COUNT: usize = 3;
/// A p99 so many times the median is a long tail.
const TAIL_FACTOR: f64 = 10.0;
/// Part of the maximum above which latencies show the instability of a full queue.
const SATURATED_PART: f64 = 0.95;
/// A column whose p99 is so many times the median column's is a spike ...
const SPIKE_FACTOR: f64 = 3.0;
/// ... if it is also longer than this, in nanoseconds.
const SPIKE_NS_MIN: u64 = 1_000_000;
/// Spikes that an event must overlap, as a part of all, to be named.
const OVERLAP_PART_MIN: f64 = 0.5;
/// Attempts that a finding on spikes needs.
const SPIKES_MIN: usize = 3;

fn text(en: impl Into<String>, ru: impl Into<String>) -> Text {
    Text { en: en.into(), ru: ru.into() }
}

/// The result in at most three sentences: the breaking point or the cost, the subjects compared,
/// and how far the figures can be trusted.
pub(super) fn verdict(report: &Report) -> Vec<Text> {
    let best =
        report.maxima.iter().filter(|maximum| maximum.rate_per_s.is_some()).max_by(|a, b| {
            let median = |maximum: &Maximum| maximum.rate_per_s.map_or(0.0, |rate| rate.median);
            median(a).total_cmp(&median(b))
        });
    let mut sentences: Vec<Text> = Vec::new();
    match best {
        Some(best) => sentences.extend(of_maximum(report, best)),
        None => sentences.extend(report.figures.first().map(|figures| of_figures(report, figures))),
    }
    // A range that contains 1 shows no difference.
    let is_different =
        |comparison: &&Comparison| comparison.ratio.min > 1.0 || comparison.ratio.max < 1.0;
    let strongest = report.comparisons.iter().filter(is_different).max_by(|a, b| {
        let distance = |comparison: &Comparison| comparison.ratio.median.max(1e-9).ln().abs();
        distance(a).total_cmp(&distance(b))
    });
    sentences.extend(strongest.map(of_comparison));
    sentences.push(trust(report));
    sentences.truncate(VERDICT_COUNT);
    sentences
}

fn of_maximum(report: &Report, maximum: &Maximum) -> Option<Text> {
    let case = report.case(maximum.case);
    let found = maximum.rate_per_s?;
    let limit_en = match maximum.limit.as_str() {
        "server" => "the server was the limit",
        "generator" => "the generator was the limit, the server may do more",
        _ => "no higher rate was tried",
    };
    let limit_ru = match maximum.limit.as_str() {
        "server" => "пределом был сервер",
        "generator" => "пределом был генератор, сервер может больше",
        _ => "выше не пробовали",
    };
    let interval = maximum
        .interval_per_s
        .map_or(String::new(), |(low, high)| format!(" ({} .. {})", rate(low), rate(high)));
    let goals = report.run.objectives.join(", ");
    let what = name(case);
    Some(text(
        format!("{what} holds {}{interval} within {goals}; {limit_en}.", rate(found.median)),
        format!("{what} держит {}{interval} при {goals}; {limit_ru}.", rate(found.median)),
    ))
}

fn of_figures(report: &Report, figures: &Figures) -> Text {
    let case = report.case(figures.case);
    let (p50, p99, max) =
        (response(figures, "p50"), response(figures, "p99"), response(figures, "max"));
    let cpu = |words: &str| {
        figures
            .cpu_per_request_ns
            .map_or(String::new(), |cpu| format!(", {} {words}", time(cpu.median)))
    };
    let achieved = rate(figures.achieved_per_s.median);
    let latencies = format!("p50 {}, p99 {}, max {}", time(p50), time(p99), time(max));
    text(
        format!("{} at {achieved}: {latencies}{}.", name(case), cpu("of CPU a request")),
        format!("{} при {achieved}: {latencies}{}.", name(case), cpu("CPU на запрос")),
    )
}

fn of_comparison(comparison: &Comparison) -> Text {
    let ratio = comparison.ratio;
    let range =
        format!("{} ({} .. {})", digits(ratio.median), digits(ratio.min), digits(ratio.max));
    let Comparison { base, other, workload, phase, figure, .. } = comparison;
    text(
        format!("{figure} of {other} is {range} times that of {base} ({workload}, {phase})."),
        format!("{figure} у {other} в {range} раза от {base} ({workload}, {phase})."),
    )
}

fn trust(report: &Report) -> Text {
    let valid = count(report, |verdict| *verdict == AttemptVerdict::Valid);
    let all = report.attempts.len();
    let doubts = report.warnings.len();
    if doubts == 0 {
        return text(
            format!("All {all} attempts count, and nothing disturbed them."),
            format!("Все попытки ({all}) засчитаны, помех не было."),
        );
    }
    text(
        format!("{valid} of {all} attempts count; see {doubts} warnings below."),
        format!("Засчитано попыток: {valid} из {all}; предупреждений: {doubts}, см. ниже."),
    )
}

/// What limits the trust in the result.
pub(super) fn warnings(report: &Report) -> Vec<Text> {
    let run = &report.run;
    let mut warnings = Vec::new();
    match &run.state {
        RunState::Complete => {}
        RunState::Running => warnings.push(text(
            "The run is not complete: it is in progress, or its process ended.",
            "Прогон не завершён: он идёт или его процесс прерван.",
        )),
        RunState::Interrupted { reason } => warnings.push(text(
            format!("The run ended early: {reason}"),
            format!("Прогон прерван: {reason}"),
        )),
    }
    if !run.shortened.is_empty() {
        let list = run.shortened.join(" ");
        warnings.push(text(
            format!("Shortened for speed, so figures are rough: {list}"),
            format!("Сокращено ради скорости, цифры грубые: {list}"),
        ));
    }
    let disturbed = count(report, |verdict| matches!(verdict, AttemptVerdict::Disturbed(_)));
    if disturbed > 0 {
        warnings.push(text(
            format!("{disturbed} attempts were disturbed and are in no figure."),
            format!("Попыток с помехами: {disturbed}; в цифры они не вошли."),
        ));
    }
    let failed = count(report, |verdict| matches!(verdict, AttemptVerdict::Failed(_)));
    if failed > 0 {
        warnings.push(text(
            format!("{failed} attempts failed and are in no figure."),
            format!("Неудачных попыток: {failed}; в цифры они не вошли."),
        ));
    }
    let missing: Vec<String> = run
        .cases
        .iter()
        .filter(|case| !report.figures.iter().any(|figures| figures.case == case.id))
        .map(name)
        .collect();
    if !missing.is_empty() {
        let (count, all) = (missing.len(), run.cases.len());
        let shown = &missing[..count.min(CASES_NAMED_MAX)];
        let rest = if count > shown.len() { "; ..." } else { "" };
        let list = format!("{}{rest}", shown.join("; "));
        warnings.push(text(
            format!("{count} of {all} cases have no valid attempt: {list}."),
            format!("Нет засчитанной попытки у {count} из {all} случаев: {list}."),
        ));
    }
    let late: Vec<&str> = PERCENTILES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| {
            let has =
                |figures: &Figures| figures.response_ns.iter().any(|(known, _)| known == name);
            !report.figures.iter().all(has)
        })
        .collect();
    if let Some(first) = late.first() {
        warnings.push(text(
            format!(
                "The generator was late for {first} and above of some cases; they are left out."
            ),
            format!("Для части случаев {first} и выше определил генератор; они опущены."),
        ));
    }
    warnings.extend(report.maxima.iter().filter(|maximum| maximum.limit == "generator").map(
        |maximum| {
            let what = name(report.case(maximum.case));
            text(
                format!("{what}: the generator was the limit, so the rate is a lower bound."),
                format!("{what}: пределом был генератор, так что это нижняя граница."),
            )
        },
    ));
    warnings
}

/// Findings by rule, in the order of cases.
pub(super) fn observations(report: &Report) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut add = |rule: &str, cases: Vec<usize>, text: Text| {
        found.push(Observation { rule: rule.to_owned(), text, cases });
    };
    for maximum in &report.maxima {
        if let Some(sentence) = of_maximum(report, maximum) {
            add("breaking-point", vec![maximum.case], sentence);
        }
        if let (Some(first), Some(_)) = (maximum.reasons.first(), maximum.rate_per_s) {
            let what = name(report.case(maximum.case));
            add(
                "limit",
                vec![maximum.case],
                text(
                    format!("{what}: the next rate failed because {first}."),
                    format!("{what}: следующая нагрузка не удержана: {first}."),
                ),
            );
        }
    }
    for figures in &report.figures {
        let case = report.case(figures.case);
        let (p50, p99) = (response(figures, "p50"), response(figures, "p99"));
        if p50 > 0.0 && p99 > TAIL_FACTOR * p50 {
            let times = digits(p99 / p50);
            add(
                "tail",
                vec![case.id],
                text(
                    format!(
                        "{}: p99 ({}) is {times} times p50 ({}).",
                        name(case),
                        time(p99),
                        time(p50)
                    ),
                    format!(
                        "{}: p99 ({}) в {times} раз больше p50 ({}).",
                        name(case),
                        time(p99),
                        time(p50)
                    ),
                ),
            );
        }
        let maximum = report.maxima.iter().find(|maximum| {
            let of = report.case(maximum.case);
            of.subject == case.subject && of.workload == case.workload && of.cell == case.cell
        });
        let limit = maximum.and_then(|maximum| maximum.rate_per_s);
        if let (Some(limit), Some(planned)) = (limit, figures.planned_per_s)
            && planned > SATURATED_PART * limit.median
        {
            let part = digits(100.0 * planned / limit.median);
            add(
                "saturated",
                vec![case.id],
                text(
                    format!(
                        "{}: held at {part} % of the maximum, where latencies measure a full queue.",
                        name(case)
                    ),
                    format!(
                        "{}: нагрузка {part} % от предела, здесь задержки меряют полную очередь.",
                        name(case)
                    ),
                ),
            );
        }
        if let Some(amplification) = figures.write_amplification {
            let times = digits(amplification.median);
            add(
                "write-amplification",
                vec![case.id],
                text(
                    format!("{}: {times} bytes were written per byte stored.", name(case)),
                    format!("{}: на байт данных записано {times} байта.", name(case)),
                ),
            );
        }
    }
    for layers in &report.layers {
        let total: f64 = layers.rows.iter().map(|row| row.cpu_ns).sum();
        if let Some(first) = layers.rows.first().filter(|_| total > 0.0) {
            let part = digits(100.0 * first.cpu_ns / total);
            let what = name(report.case(layers.case));
            let layer = format!("{}/{}", first.activity, first.stage);
            let (cost, all) = (time(first.cpu_ns), time(total));
            add(
                "layer",
                vec![layers.case],
                text(
                    format!(
                        "{what}: {part} % of the CPU time is {layer} ({cost} of {all} a request)."
                    ),
                    format!("{what}: {part} % времени CPU - {layer} ({cost} из {all} на запрос)."),
                ),
            );
        }
    }
    for line in &report.time_lines {
        for (lane, part, spikes) in spikes(line) {
            let what = name(report.case(line.case));
            let percent = digits(100.0 * part);
            add(
                "spikes",
                vec![line.case],
                text(
                    format!("{what}: {percent} % of {spikes} latency spikes overlap a {lane}."),
                    format!("{what}: {percent} % всплесков задержки ({spikes}) совпали с {lane}."),
                ),
            );
        }
    }
    let is_choice = |sweep: &&Sweep| {
        let measured = sweep.cells.iter().filter(|(_, value)| value.is_some());
        measured.count() > 1 && ["rate_max", "p99"].contains(&sweep.figure.as_str())
    };
    for sweep in report.sweeps.iter().filter(is_choice) {
        if let Some(best) = &sweep.best {
            let cell: Vec<String> = sweep
                .axes
                .iter()
                .zip(best)
                .map(|(axis, value)| format!("{} {value}", axis.name))
                .collect();
            let (cell, figure) = (cell.join(", "), &sweep.figure);
            let of = format!("{}, {}", sweep.subject, sweep.workload);
            add(
                "sweep",
                Vec::new(),
                text(
                    format!("{of}: the best {figure} is at {cell}."),
                    format!("{of}: лучший {figure} при {cell}."),
                ),
            );
        }
    }
    found
}

/// Lanes that overlap at least half of the spikes of a time line, with that part, and the number of
/// spikes.
fn spikes(line: &crate::model::TimeLine) -> Vec<(String, f64, usize)> {
    let mut p99: Vec<u64> = line.columns.iter().map(|column| column.p99_ns).collect();
    p99.sort_unstable();
    let Some(&median) = p99.get(p99.len() / 2) else {
        return Vec::new();
    };
    let bound = ((median as f64 * SPIKE_FACTOR) as u64).max(SPIKE_NS_MIN);
    let spikes: Vec<_> = line.columns.iter().filter(|column| column.p99_ns > bound).collect();
    if spikes.len() < SPIKES_MIN {
        return Vec::new();
    }
    let overlap = |lane: &crate::model::Lane| {
        let hit = spikes.iter().filter(|column| {
            lane.spans.iter().any(|(from, to, _)| *from < column.end_ns && *to >= column.start_ns)
        });
        hit.count() as f64 / spikes.len() as f64
    };
    let named = line.lanes.iter().map(|lane| (lane.name.clone(), overlap(lane), spikes.len()));
    named.filter(|(_, part, _)| *part >= OVERLAP_PART_MIN).collect()
}

fn response(figures: &Figures, name: &str) -> f64 {
    let found = figures.response_ns.iter().find(|(known, _)| known == name);
    found.map_or(0.0, |(_, value)| value.median)
}

fn count(report: &Report, is: impl Fn(&AttemptVerdict) -> bool) -> usize {
    report.attempts.iter().filter(|attempt| is(&attempt.verdict)).count()
}

/// The subject of a case and the values of its cell: `kvant [4, 64]`.
pub(super) fn subject_in_cell(case: &Case) -> String {
    // An axis that does not concern the case has no value.
    let values: Vec<&str> =
        case.cell.iter().filter(|value| !value.is_empty()).map(String::as_str).collect();
    match values.as_slice() {
        [] => case.subject.clone(),
        values => format!("{} [{}]", case.subject, values.join(", ")),
    }
}

/// A case in words: `kvant [4, 64], get, hold`.
fn name(case: &Case) -> String {
    format!("{}, {}, {}", subject_in_cell(case), case.workload, case.phase)
}
