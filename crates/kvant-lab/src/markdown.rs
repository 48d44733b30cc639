//! The report as Markdown, in the manner of a written report: figures, tables, findings, and a
//! place for the author's own words, which a rebuild keeps.

use crate::model::{Figures, GainFigure, Maximum, Measured, Report, Text, finding_text};
use crate::report::Language;
use kvant_load::units::format_time_ns;
use std::fmt::Write;

/// Begin of the author's place.
const NOTES_BEGIN: &str = "<!-- notes -->";
/// End of the author's place.
const NOTES_END: &str = "<!-- /notes -->";

/// The text of `report.md`. `old` is the text that it replaces, if there is one: the author's words
/// in it are kept.
pub fn markdown(report: &Report, language: Language, old: Option<&str>) -> String {
    let mut page = Page { text: String::new(), language };
    page.line(&format!("# {}", report.run.title));
    page.paragraphs(report.verdict.iter());
    page.heading("Notes", "Заметки");
    let notes = old.and_then(notes).unwrap_or("\n");
    page.line(&format!("{NOTES_BEGIN}{notes}{NOTES_END}"));
    if !report.warnings.is_empty() {
        page.heading("Warnings", "Предупреждения");
        page.list(report.warnings.iter());
    }
    page.heading("Environment", "Условия");
    page.table(
        &[("", ""), ("", "")],
        report
            .environment
            .iter()
            .map(|(name, value)| vec![of(language, name).to_owned(), value.clone()]),
    );
    page.sides(report);
    page.interventions(report);
    page.what_if(report);
    page.maxima(report);
    page.figures(report);
    page.comparisons(report);
    page.sweeps(report);
    page.known(report);
    page.layers(report);
    if !report.observations.is_empty() {
        page.heading("Observations", "Наблюдения");
        page.list(report.observations.iter().map(|found| &found.text));
    }
    page.wrk2(report);
    page.heading("Files", "Файлы");
    report.files.iter().for_each(|file| page.line(&format!("- [{file}]({file})")));
    page.text
}

/// Whether [`markdown`] finds the place of the author's words in a report.
pub fn has_notes(report: &str) -> bool {
    notes(report).is_some()
}

/// The author's words in a report.
fn notes(report: &str) -> Option<&str> {
    let (_, rest) = report.split_once(NOTES_BEGIN)?;
    Some(rest.split_once(NOTES_END)?.0)
}

struct Page {
    text: String,
    language: Language,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, en: &str, ru: &str) {
        let words = choose(self.language, en, ru);
        self.line(&format!("\n## {words}\n"));
    }

    fn paragraphs<'a>(&mut self, texts: impl Iterator<Item = &'a Text>) {
        for text in texts {
            self.line(&format!("\n{}", of(self.language, text)));
        }
    }

    fn list<'a>(&mut self, texts: impl Iterator<Item = &'a Text>) {
        for text in texts {
            self.line(&format!("- {}", of(self.language, text)));
        }
    }

    /// A table with headings in English and Russian.
    fn table(&mut self, heads: &[(&str, &str)], rows: impl Iterator<Item = Vec<String>>) {
        let head: Vec<&str> = heads.iter().map(|(en, ru)| choose(self.language, en, ru)).collect();
        self.line(&format!("| {} |", head.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(head.len())));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            self.line(&format!("| {} |", cells.join(" | ")));
        }
    }

    fn maxima(&mut self, report: &Report) {
        if report.maxima.is_empty() {
            return;
        }
        self.heading("Breaking points", "Точки разладки");
        let language = self.language;
        let row = |maximum: &Maximum| {
            let interval = maximum.interval_per_s.map_or("-".into(), |(low, high)| {
                let kind = if maximum.is_interval_of_median {
                    "95 %"
                } else {
                    choose(language, "held .. failed", "удержана .. не удержана")
                };
                format!("{low:.0} .. {high:.0} ({kind})")
            });
            vec![
                case_name(report, maximum.case, ""),
                maximum.rate_per_s.map_or("-".into(), |rate| value(&rate, 0)),
                interval,
                maximum.saturation_per_s.map_or("-".into(), |rate| value(&rate, 0)),
                match maximum.is_confirmed {
                    true => choose(language, "yes", "да"),
                    false => choose(language, "no", "нет"),
                }
                .to_owned(),
                maximum.limit.clone(),
                maximum.reasons.join("; "),
            ]
        };
        self.table(
            &[
                ("case", "случай"),
                ("rate, /s", "нагрузка, /с"),
                ("interval, /s", "интервал, /с"),
                ("closed loop, /s", "замкнутый цикл, /с"),
                ("confirmed", "подтверждено"),
                ("limit", "предел"),
                ("why more failed", "почему не больше"),
            ],
            report.maxima.iter().map(row),
        );
    }

    fn figures(&mut self, report: &Report) {
        if report.figures.is_empty() {
            return;
        }
        self.heading("Figures", "Цифры");
        let named = |figures: &Figures, name: &str| {
            let found = figures.response_ns.iter().find(|(known, _)| known == name);
            found.map_or("-".into(), |(_, measured)| milliseconds(measured))
        };
        let latencies = |figures: &Figures| {
            vec![
                case_name(report, figures.case, &figures.step),
                figures.planned_per_s.map_or("-".into(), |rate| format!("{rate:.0}")),
                value(&figures.achieved_per_s, 0),
                value(&figures.goodput_per_s, 0),
                value(&scaled(&figures.errors_part, 100.0), 3),
                named(figures, "p50"),
                named(figures, "p99"),
                named(figures, "p99.9"),
                named(figures, "max"),
                figures.attempts.len().to_string(),
                figures.disturbed.to_string(),
                figures.failed.to_string(),
            ]
        };
        self.table(
            &[
                ("case", "случай"),
                ("planned, /s", "план, /с"),
                ("achieved, /s", "достигнуто, /с"),
                ("goodput, /s", "полезно, /с"),
                ("errors, %", "ошибки, %"),
                ("p50, ms", "p50, мс"),
                ("p99, ms", "p99, мс"),
                ("p99.9, ms", "p99.9, мс"),
                ("max, ms", "наибольшее, мс"),
                ("attempts", "попытки"),
                ("disturbed", "с помехами"),
                ("failed", "не удались"),
            ],
            report.figures.iter().map(latencies),
        );
        self.heading("Cost", "Затраты");
        let costs = |figures: &Figures| {
            let optional = |measured: &Option<Measured>, scale: f64, decimals: usize| {
                measured.map_or("-".into(), |measured| value(&scaled(&measured, scale), decimals))
            };
            vec![
                case_name(report, figures.case, &figures.step),
                optional(&figures.cpu_per_request_ns, 1e-3, 1),
                optional(&figures.cpu_with_later_work_ns, 1e-3, 1),
                optional(&figures.generator_cpu_per_request_ns, 1e-3, 1),
                optional(&figures.rss_max_bytes, 1.0 / f64::from(1 << 20), 0),
                optional(&figures.disk_written_per_request_bytes, 1.0, 0),
                optional(&figures.write_amplification, 1.0, 2),
                optional(&figures.switches_per_request, 1.0, 2),
            ]
        };
        self.table(
            &[
                ("case", "случай"),
                ("CPU, us/request", "процессор, мкс/запрос"),
                ("with later work", "с отложенной работой"),
                ("generator's CPU, us/request", "процессор генератора, мкс/запрос"),
                ("memory, MiB", "память, МиБ"),
                ("disk, bytes/request", "диск, байт/запрос"),
                ("write amplification", "усиление записи"),
                ("context switches/request", "переключения/запрос"),
            ],
            report.figures.iter().map(costs),
        );
        let note = choose(
            self.language,
            "Medians of the repeats, with the least and the greatest in brackets. Errors are a \
             part of the planned requests. Write amplification counts from the begin of the \
             measured time; what the server defers beyond the end is not in it.",
            "Медианы повторов, в скобках наименьшее и наибольшее. Ошибки: часть запланированных \
             запросов. Усиление записи считается от начала измерения; что сервер отложил за его \
             конец, в него не входит.",
        );
        self.line(&format!("\n{note}"));
    }

    fn sides(&mut self, report: &Report) {
        let Some(sides) = &report.sides else { return };
        self.heading("Two sides", "Две стороны");
        self.line(&format!("A: `{}`, B: `{}`\n", sides.a, sides.b));
        let interval = |interval: Option<(f64, f64)>| {
            interval.map_or("-".into(), |(low, high)| format!("{low:.3} .. {high:.3}"))
        };
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
        if !sides.assertions.is_empty() {
            self.table(
                &[("assertion", "утверждение"), ("case", "случай"), ("B / A", "B / A"), ("", "")],
                sides.assertions.iter().map(|one| {
                    let (text, case) = (format!("`{}`", one.text), one.case.clone());
                    vec![text, case, ratio(one.ratio), one.decision.name().to_owned()]
                }),
            );
            self.line("");
        }
        let language = self.language;
        self.table(
            &[
                ("case", "случай"),
                ("figure", "цифра"),
                ("B / A", "B / A"),
                ("interval", "интервал"),
                ("blocks", "блоков"),
                ("", ""),
            ],
            sides.figures.iter().map(|one| {
                vec![
                    format!("{} {}", one.case(), one.layer).trim_end().to_owned(),
                    one.figure.name().to_owned(),
                    ratio(one.ratio),
                    interval(one.interval),
                    one.block_count.to_string(),
                    of(language, &one.claim()).to_owned(),
                ]
            }),
        );
    }

    fn interventions(&mut self, report: &Report) {
        let Some(found) = &report.interventions else { return };
        self.heading("Interventions", "Вмешательства");
        let language = self.language;
        let window = format_time_ns(found.facts.window_ns);
        let facts = choose(
            language,
            "Blocks, window and seed of the moments",
            "Блоки, окно и зерно моментов",
        );
        self.line(&format!("{facts}: {}, {window}, {}.\n", found.block_count, found.seed));
        self.table(
            &[
                ("case", "случай"),
                ("suspect", "подозреваемое"),
                ("figure", "цифра"),
                ("without it", "без него"),
                ("blocks", "блоков"),
                ("", ""),
            ],
            found.effects.iter().map(|effect| {
                let case = report.case(effect.case);
                vec![
                    format!("{} {} {}", case.subject, case.workload, case.phase),
                    effect.suspect.name().to_owned(),
                    format!("{} p{}", effect.operation, effect.percent),
                    effect.control_text(),
                    effect.block_count.to_string(),
                    of(language, &finding_text(effect)).to_owned(),
                ]
            }),
        );
        for (suspect, count, problem) in &found.failures {
            self.line(&format!("\n{suspect} ({count}): {problem}"));
        }
    }

    fn what_if(&mut self, report: &Report) {
        let Some(found) = &report.what_if else { return };
        self.heading("What if", "Что, если");
        let language = self.language;
        let facts = choose(language, "Blocks and seed of the order", "Блоки и зерно порядка");
        self.line(&format!("{facts}: {}, {}.\n", found.block_count, found.seed));
        let percents: Vec<String> =
            found.facts.percents.iter().map(|percent| format!("-{percent} %")).collect();
        let mut heads = vec![
            ("case", "случай"),
            ("figure", "показатель"),
            ("stage", "этап"),
            ("as it is", "как есть"),
        ];
        heads.extend(percents.iter().map(|percent| (percent.as_str(), percent.as_str())));
        self.table(
            &heads,
            found.gains.iter().map(|gains| {
                let case = report.case(gains.case);
                let as_it_is = match gains.figure {
                    GainFigure::Rate => format!("{:.0}/s", gains.as_it_is),
                    GainFigure::P50 | GainFigure::P99 => format_time_ns(gains.as_it_is as u64),
                };
                let mut row = vec![
                    format!("{} {} {}", case.subject, case.workload, case.planned_phase()),
                    gains.figure.name().to_owned(),
                    gains.stage.name().to_owned(),
                    as_it_is,
                ];
                row.extend(gains.changes.iter().map(|one| of(language, &one.text()).to_owned()));
                row
            }),
        );
        for (stage, count, problem) in &found.failures {
            self.line(&format!("\n{stage} ({count}): {problem}"));
        }
    }

    fn comparisons(&mut self, report: &Report) {
        if report.comparisons.is_empty() {
            return;
        }
        self.heading("Comparisons", "Сравнения");
        self.table(
            &[
                ("workload", "нагрузка"),
                ("phase", "фаза"),
                ("figure", "цифра"),
                ("subjects", "серверы"),
                ("ratio", "отношение"),
                ("95 % interval", "95 % интервал"),
                ("repeats", "повторы"),
            ],
            report.comparisons.iter().map(|comparison| {
                let cell = joined(&comparison.cell);
                vec![
                    format!("{} {cell}", comparison.workload).trim_end().to_owned(),
                    comparison.phase.clone(),
                    comparison.figure.clone(),
                    format!("{} / {}", comparison.other, comparison.base),
                    value(&comparison.ratio, 2),
                    comparison
                        .interval
                        .map_or("-".into(), |(low, high)| format!("{low:.2} .. {high:.2}")),
                    comparison.ratio.count.to_string(),
                ]
            }),
        );
    }

    /// A table with the values of the last axis as columns and those of the others as rows.
    fn sweeps(&mut self, report: &Report) {
        for sweep in &report.sweeps {
            let title =
                format!("{}, {}, {}: {}", sweep.subject, sweep.workload, sweep.phase, sweep.figure);
            self.heading(&title, &title);
            let Some((columns, rows)) = sweep.axes.split_last() else {
                continue;
            };
            let row_axes: Vec<&str> = rows.iter().map(|axis| axis.name.as_str()).collect();
            let corner = format!("{} \\ {}", row_axes.join(", "), columns.name);
            let head: Vec<(&str, &str)> = std::iter::once(corner.as_str())
                .chain(columns.values.iter().map(String::as_str))
                .map(|head| (head, head))
                .collect();
            let mut heads: Vec<&[String]> = Vec::new();
            for (cell, _) in &sweep.cells {
                let row = &cell[..cell.len() - 1];
                if !heads.contains(&row) {
                    heads.push(row);
                }
            }
            let cell_of = |row: &[String], column: &String| {
                let found = sweep.cells.iter().find(|(cell, _)| {
                    cell.split_last().is_some_and(|(last, rest)| last == column && rest == row)
                });
                let Some((cell, Some(measured))) = found else {
                    return "-".to_owned();
                };
                let text = match sweep.unit.as_str() {
                    "ns" if sweep.figure == "cpu_per_request" => {
                        format!("{} us", value(&scaled(measured, 1e-3), 1))
                    }
                    "ns" => format!("{} ms", milliseconds(measured)),
                    _ => value(measured, 0),
                };
                if sweep.best.as_ref() == Some(cell) { format!("**{text}**") } else { text }
            };
            let lines: Vec<Vec<String>> = heads
                .iter()
                .map(|row| {
                    let cells = columns.values.iter().map(|column| cell_of(row, column));
                    std::iter::once(joined(row)).chain(cells).collect()
                })
                .collect();
            self.table(&head, lines.into_iter());
        }
    }

    fn known(&mut self, report: &Report) {
        if report.known.is_empty() {
            return;
        }
        self.heading("Beside other reports", "Рядом с другими отчётами");
        let rows = report.known.iter().map(|row| {
            let decimals = if row.unit == "/s" { 0 } else { 2 };
            let ours = row.ours.iter().map(|(of, value)| format!("{of}: {value:.decimals$}"));
            vec![
                row.what.clone(),
                format!("{}, {}", row.figure, row.unit),
                format!("{}", row.theirs),
                ours.collect::<Vec<_>>().join("; "),
                row.source.clone(),
            ]
        });
        self.table(
            &[
                ("what", "что"),
                ("figure", "цифра"),
                ("theirs", "у них"),
                ("ours", "у нас"),
                ("source", "источник"),
            ],
            rows,
        );
    }

    fn layers(&mut self, report: &Report) {
        for layers in &report.layers {
            let name = case_name(report, layers.case, &layers.step);
            self.heading(&format!("Cost a request: {name}"), &format!("Цена запроса: {name}"));
            let rows = layers.rows.iter().map(|row| {
                let waits = row.waits_ns.iter().map(|(kind, ns)| format!("{kind} {ns:.0}"));
                vec![
                    row.activity.clone(),
                    row.stage.clone(),
                    format!("{:.0}", row.cpu_ns),
                    format!("{:.0}", row.allocated_bytes),
                    waits.collect::<Vec<_>>().join(", "),
                ]
            });
            self.table(
                &[
                    ("activity", "работа"),
                    ("stage", "этап"),
                    ("CPU, ns", "процессор, нс"),
                    ("allocated, bytes", "выделено, байт"),
                    ("waits, ns", "ожидания, нс"),
                ],
                rows,
            );
        }
    }

    fn wrk2(&mut self, report: &Report) {
        for block in &report.wrk2 {
            let name = case_name(report, block.case, "");
            self.heading(&name, &name);
            self.line(&format!("```\n{}```", block.text));
        }
    }
}

fn of(language: Language, text: &Text) -> &str {
    choose(language, &text.en, &text.ru)
}

fn choose<'a>(language: Language, en: &'a str, ru: &'a str) -> &'a str {
    match language {
        Language::English => en,
        Language::Russian => ru,
    }
}

/// Values of a cell, without those of axes that do not concern it.
fn joined(cell: &[String]) -> String {
    let values = cell.iter().filter(|value| !value.is_empty()).map(String::as_str);
    values.collect::<Vec<_>>().join(", ")
}

fn case_name(report: &Report, id: usize, step: &str) -> String {
    let case = report.case(id);
    let cell = joined(&case.cell);
    let parts = [&case.subject, &cell, &case.workload, &case.phase, step];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" / ")
}

fn value(measured: &Measured, decimals: usize) -> String {
    let mut text = format!("{:.decimals$}", measured.median);
    if measured.count > 1 {
        write!(text, " ({:.decimals$} .. {:.decimals$})", measured.min, measured.max)
            .expect("writing to memory cannot fail");
    }
    text
}

fn milliseconds(measured: &Measured) -> String {
    value(&scaled(measured, 1e-6), 2)
}

fn scaled(measured: &Measured, factor: f64) -> Measured {
    Measured {
        median: measured.median * factor,
        min: measured.min * factor,
        max: measured.max * factor,
        count: measured.count,
    }
}
