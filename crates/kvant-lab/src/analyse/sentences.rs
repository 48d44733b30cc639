//! Sentences by rule: verdict, warnings, observations. Each states figures of the report and
//! nothing that it does not have.

use super::figures::PERCENTILES;
use super::spikes;
use super::units::{digits, rate, time};
use crate::model::{
    Comparison, Figures, LayerRow, Maximum, Observation, Report, Sweep, Text, TimeLine,
};
use crate::record::{Attempt, AttemptVerdict, Case, PhaseKind, Run, RunState, SubjectFacts};

/// Cases that a warning names.
const CASES_NAMED_MAX: usize = 4;
/// Part of the CPU time of a request from which its greatest layer is worth a sentence.
const LAYER_PART_MIN: f64 = 0.05;
/// Sentences of a verdict.
const VERDICT_COUNT: usize = 3;
/// A p99 so many times the median is a long tail.
const TAIL_FACTOR: f64 = 10.0;
/// Part of the maximum above which latencies show the instability of a full queue.
const SATURATED_PART: f64 = 0.95;
/// Share of errors above which figures are of another workload than was asked for.
const ERRORS_PART_MAX: f64 = 0.001;

pub(super) fn text(en: impl Into<String>, ru: impl Into<String>) -> Text {
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
    let is_different = |comparison: &&Comparison| comparison.difference().is_some();
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
    let between = |median: &str, bracket: [&str; 2]| {
        maximum.interval_per_s.map_or(String::new(), |(low, high)| {
            let (low, high) = (rate(low), rate(high));
            match maximum.is_interval_of_median {
                true => format!(" ({median} {low} .. {high})"),
                false => format!(" ({low} {}, {high} {})", bracket[0], bracket[1]),
            }
        })
    };
    let interval_en = between("95 % interval", ["held", "failed"]);
    let interval_ru = between("95 %:", ["удержано", "не удержано"]);
    let goals = report.run.objectives.join(", ");
    let what = name(case);
    Some(text(
        format!("{what} holds {}{interval_en} within {goals}; {limit_en}.", rate(found.median)),
        format!("{what} держит {}{interval_ru} при {goals}; {limit_ru}.", rate(found.median)),
    ))
}

fn of_figures(report: &Report, figures: &Figures) -> Text {
    let case = report.case(figures.case);
    // Percentiles that are the generator's are not known.
    let known = ["p50", "p99", "max"].into_iter().filter(|name| response(figures, name) > 0.0);
    let latencies: Vec<String> =
        known.map(|name| format!("{name} {}", time(response(figures, name)))).collect();
    let list = |cpu_words: &str| {
        let cpu = figures.cpu_per_request_ns.iter();
        let cpu = cpu.map(|cpu| format!("{} {cpu_words}", time(cpu.median)));
        latencies.iter().cloned().chain(cpu).collect::<Vec<_>>().join(", ")
    };
    let achieved = rate(figures.achieved_per_s.median);
    text(
        format!("{} at {achieved}: {}.", name(case), list("of CPU a request")),
        format!("{} при {achieved}: {}.", name(case), list("CPU на запрос")),
    )
}

fn of_comparison(comparison: &Comparison) -> Text {
    let Comparison { base, other, workload, phase, figure, ratio, interval, .. } = comparison;
    let median = digits(ratio.median);
    let range = |(low, high)| format!("{} .. {}", digits(low), digits(high));
    let (en, ru) = match interval {
        Some(interval) => (
            format!("95 % interval {} of {} repeats", range(*interval), ratio.count),
            format!("95 %: {}, повторов {}", range(*interval), ratio.count),
        ),
        None => {
            let range = range((ratio.min, ratio.max));
            (
                format!("{range} in {} repeats", ratio.count),
                format!("{range}, повторов {}", ratio.count),
            )
        }
    };
    text(
        format!(
            "{figure} of {other} is {median} times that of {base} ({workload}, {phase}; {en})."
        ),
        format!("{figure} у {other} в {median} раза от {base} ({workload}, {phase}; {ru})."),
    )
}

/// How many attempts count.
pub(super) fn trust(report: &Report) -> Text {
    let valid = count(report, |verdict| *verdict == AttemptVerdict::Valid);
    let all = report.attempts.len();
    let doubts = report.warnings.len();
    if doubts == 0 && valid == all {
        return text(
            format!("All {all} attempts count, and nothing disturbed them."),
            format!("Все попытки ({all}) засчитаны, помех не было."),
        );
    }
    let (see, see_ru) = match doubts {
        0 => (String::new(), String::new()),
        _ => (
            format!("; see {doubts} warnings below"),
            format!("; предупреждений: {doubts}, см. ниже"),
        ),
    };
    text(
        format!("{valid} of {all} attempts count{see}."),
        format!("Засчитано попыток: {valid} из {all}{see_ru}."),
    )
}

/// Attempts whose files cannot be read.
pub(super) fn damages(damaged: &[(u32, String)]) -> Vec<Text> {
    let sentence = |(attempt, problem): &(u32, String)| {
        text(
            format!("Attempt {attempt} is left out where its file is needed: {problem}"),
            format!("Попытка {attempt} опущена там, где нужен её файл: {problem}"),
        )
    };
    damaged.iter().map(sentence).collect()
}

/// What went wrong with the servers themselves.
fn of_subjects(run: &Run) -> Vec<Text> {
    let killed = run.subjects.iter().filter(|subject| subject.killed_count > 0).map(|subject| {
        let SubjectFacts { name, killed_count, .. } = subject;
        text(
            format!("{name} did not end after SIGTERM and was killed {killed_count} times."),
            format!("{name} не завершался по SIGTERM и был убит, раз: {killed_count}."),
        )
    });
    let mismatches = run.data.iter().flat_map(|data| &data.mismatches).map(|mismatch| {
        text(
            format!("Servers store different data: {mismatch}."),
            format!("Данные серверов различаются: {mismatch}."),
        )
    });
    killed.chain(mismatches).collect()
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
    warnings.extend(without_rate(report));
    warnings.extend(noted(report));
    warnings.extend(of_subjects(run));
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
    // A search that found no rate has no figure, and counts.
    let is_missing = |case: &&Case| {
        let counts =
            |attempt: &Attempt| attempt.case == case.id && attempt.verdict == AttemptVerdict::Valid;
        !report.attempts.iter().any(counts)
    };
    let missing: Vec<String> = run.cases.iter().filter(is_missing).map(name).collect();
    if let Some(list) = listed(&missing) {
        let (count, all) = (missing.len(), run.cases.len());
        warnings.push(text(
            format!("{count} of {all} cases have no valid attempt: {list}."),
            format!("Нет засчитанной попытки у {count} из {all} случаев: {list}."),
        ));
    }
    // An external generator measures no latencies.
    let has_latencies = |one: &&Figures| report.case(one.case).kind != PhaseKind::Command;
    let is_late = |name: &&str| {
        let has = |figures: &Figures| figures.response_ns.iter().any(|(known, _)| known == name);
        !report.figures.iter().filter(has_latencies).all(has)
    };
    if let Some(first) = PERCENTILES.iter().map(|(name, _)| *name).find(is_late) {
        warnings.push(text(
            format!(
                "The generator was late for {first} and above of some cases; they are left out."
            ),
            format!("Для части случаев {first} и выше определил генератор; они опущены."),
        ));
    }
    for figures in &report.figures {
        let part = figures.errors_part.median;
        if part > ERRORS_PART_MAX {
            let what = name_of_step(report.case(figures.case), &figures.step);
            let percent = digits(100.0 * part);
            warnings.push(text(
                format!("{what}: {percent} % of the requests failed."),
                format!("{what}: {percent} % запросов с ошибкой."),
            ));
        }
    }
    let unconfirmed = report.maxima.iter().filter(|one| !one.is_confirmed);
    let unconfirmed: Vec<String> = unconfirmed
        .filter(|one| one.rate_per_s.is_some())
        .map(|one| name(report.case(one.case)))
        .collect();
    if let Some(list) = listed(&unconfirmed) {
        warnings.push(text(
            format!("Longer runs did not confirm the highest rate in every repeat: {list}."),
            format!("Наибольшая нагрузка подтверждена не во всех повторах: {list}."),
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

/// Searches that count and found no rate: they are in no median of rates.
fn without_rate(report: &Report) -> impl Iterator<Item = Text> + '_ {
    report.maxima.iter().filter_map(|maximum| {
        let all = maximum.search_count;
        let without = all.checked_sub(maximum.rate_per_s.map_or(0, |rate| rate.count))?;
        let what = name(report.case(maximum.case));
        (without > 0).then(|| {
            text(
                format!("{what}: no rate holds in {without} of {all} searches."),
                format!("{what}: ни одна нагрузка не удержана в {without} из {all} поисков."),
            )
        })
    })
}

/// The first names of a list, if it has any.
fn listed(names: &[String]) -> Option<String> {
    let shown = names.get(..names.len().min(CASES_NAMED_MAX)).filter(|shown| !shown.is_empty())?;
    let rest = if names.len() > shown.len() { "; ..." } else { "" };
    Some(format!("{}{rest}", shown.join("; ")))
}

/// Attempts that count, but with notes.
fn noted(report: &Report) -> Option<Text> {
    let is_noted =
        |attempt: &&Attempt| attempt.verdict == AttemptVerdict::Valid && !attempt.notes.is_empty();
    let count = report.attempts.iter().filter(is_noted).count();
    let first = report.attempts.iter().find(is_noted)?;
    let (number, notes) = (first.number, first.notes.join("; "));
    Some(text(
        format!("{count} attempts that count have notes in the journal, first {number}: {notes}."),
        format!("Засчитанных попыток с оговорками в журнале: {count}, первая {number}: {notes}."),
    ))
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
    let mut amplified = Vec::new();
    for figures in &report.figures {
        let case = report.case(figures.case);
        let name = name_of_step(case, &figures.step);
        let (p50, p99) = (response(figures, "p50"), response(figures, "p99"));
        if p50 > 0.0 && p99 > TAIL_FACTOR * p50 {
            let times = digits(p99 / p50);
            add(
                "tail",
                vec![case.id],
                text(
                    format!("{}: p99 ({}) is {times} times p50 ({}).", name, time(p99), time(p50)),
                    format!(
                        "{}: p99 ({}) в {times} раз больше p50 ({}).",
                        name,
                        time(p99),
                        time(p50)
                    ),
                ),
            );
        }
        if let Some(failed) = figures.service_failed_p99_ns {
            add("refusals", vec![case.id], refusals(case, figures, failed.median));
        }
        if let (Some(limit), Some(planned)) = (limit_per_s(report, case), figures.planned_per_s)
            && planned > SATURATED_PART * limit
        {
            let part = digits(100.0 * planned / limit);
            add(
                "saturated",
                vec![case.id],
                text(
                    format!(
                        "{}: held at {part} % of the maximum, where latencies measure a full queue.",
                        name
                    ),
                    format!(
                        "{}: нагрузка {part} % от предела, здесь задержки меряют полную очередь.",
                        name
                    ),
                ),
            );
        }
        // One for each workload of a subject: the cases of a sweep or of steps are in the table.
        let is_first = is_new(&mut amplified, [&case.subject, &case.workload]);
        if let Some(amplification) = figures.write_amplification.filter(|_| is_first) {
            let times = digits(amplification.median);
            add(
                "write-amplification",
                vec![case.id],
                text(
                    format!("{name}: {times} bytes were written per byte stored."),
                    format!("{name}: на байт данных записано {times} байта."),
                ),
            );
        }
    }
    for layers in &report.layers {
        let total: f64 = layers.rows.iter().map(|row| row.cpu_ns).sum();
        // Rows are in descending order; work outside of requests and stages has no name.
        let named = layers.rows.iter().map(|row| (layer_name(row), row.cpu_ns));
        let Some((layer, cpu_ns)) = named.into_iter().find(|(name, _)| !name.is_empty()) else {
            continue;
        };
        if cpu_ns >= total * LAYER_PART_MIN && total > 0.0 {
            let part = digits(100.0 * cpu_ns / total);
            let what = name_of_step(report.case(layers.case), &layers.step);
            let (cost, all) = (time(cpu_ns), time(total));
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
    // Steps of a search that fail have spikes by themselves.
    let is_of_one_rate = |line: &&TimeLine| report.case(line.case).kind != PhaseKind::FindMax;
    for line in report.time_lines.iter().filter(is_of_one_rate) {
        for sentence in spikes::sentences(line, &name(report.case(line.case))) {
            add("spikes", vec![line.case], sentence);
        }
    }
    let is_choice = |sweep: &&Sweep| {
        let measured = sweep.cells.iter().filter(|(_, value)| value.is_some());
        // Where each cell has a maximum, latencies are of different rates.
        let has_maximum = report.sweeps.iter().any(|other| {
            let of = |sweep: &Sweep| {
                [&sweep.subject, &sweep.workload, &sweep.phase].map(String::to_owned)
            };
            other.figure == "rate_max" && of(other) == of(sweep)
        });
        let figure = if has_maximum { "rate_max" } else { "p99" };
        measured.count() > 1 && sweep.figure == figure
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

/// The highest rate of a case's subject and workload, by a search or else by a closed loop.
fn limit_per_s(report: &Report, case: &Case) -> Option<f64> {
    let is_same = |id: usize| {
        let of = report.case(id);
        of.subject == case.subject && of.workload == case.workload && of.cell == case.cell
    };
    let searched = report.maxima.iter().find(|maximum| is_same(maximum.case));
    let is_closed = |figures: &&Figures| {
        is_same(figures.case) && report.case(figures.case).kind == PhaseKind::Closed
    };
    searched.and_then(|maximum| maximum.rate_per_s).map(|rate| rate.median).or_else(|| {
        let closed = report.figures.iter().find(is_closed);
        closed.map(|figures| figures.goodput_per_s.median)
    })
}

/// How fast errors and other responses were.
fn refusals(case: &Case, figures: &Figures, failed_ns: f64) -> Text {
    let step = if figures.step.is_empty() { String::new() } else { format!(", {}", figures.step) };
    let what = format!("{}{step}", name(case));
    let percent = digits(100.0 * figures.errors_part.median);
    let (failed, others) = (time(failed_ns), time(figures.service_succeeded_p99_ns.median));
    text(
        format!(
            "{what}: {percent} % of the requests failed; from write to response p99 of error \
             statuses is {failed}, of others {others}."
        ),
        format!(
            "{what}: {percent} % запросов с ошибкой; от записи до ответа p99 ответов об ошибке \
             {failed}, остальных {others}."
        ),
    )
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

/// A case and one of its steps: `kvant [4, 64], get, steps, 20k/s`.
fn name_of_step(case: &Case, step: &str) -> String {
    match step {
        "" => name(case),
        step => format!("{}, {step}", name(case)),
    }
}

/// `get/memtable`, without parts that are not set; empty for CPU time that no sample accounts for.
fn layer_name(row: &LayerRow) -> String {
    let parts = [row.activity.as_str(), row.stage.as_str()];
    let named = parts.into_iter().filter(|part| !part.is_empty() && *part != "none");
    let named: Vec<&str> = named.filter(|part| !part.starts_with('[')).collect();
    named.join("/")
}

/// Whether `of` was not among `known`, to which it is added.
fn is_new<'a>(known: &mut Vec<[&'a String; 2]>, of: [&'a String; 2]) -> bool {
    let is_new = !known.contains(&of);
    known.extend(is_new.then_some(of));
    is_new
}

/// A case in words: `kvant [4, 64], get, hold`.
fn name(case: &Case) -> String {
    format!("{}, {}, {}", subject_in_cell(case), case.workload, case.phase)
}
