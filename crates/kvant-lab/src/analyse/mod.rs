//! Analysis: every figure and sentence of a report, computed from a run directory.
//!
//! The attempts that count are read by `directory`; one file a section of the report computes its
//! figures; `sentences` says in words what they mean.
//!
//! Threads: the caller's.

mod account;
mod curves;
mod directory;
mod environment;
mod evidence;
mod figures;
mod hlog;
mod intervention_sentences;
mod interventions;
mod layers;
mod maxima;
mod responses;
mod sentences;
mod side_sentences;
mod sides;
mod spikes;
mod statistics;
mod tables;
mod time_line;
mod units;
mod what_if;
mod what_if_sentences;

pub use evidence::{AttemptEvidence, evidence};
pub use interventions::interventions;

use crate::model::{self, Block, Layers, Report, TimeLine};
use crate::record::{Case, PhaseKind, Run};
use directory::{Directory, Measurement, of_median_p99};
use kvant_base::Result;
use kvant_env::host;
use kvant_load::report::wrk2;
use std::path::Path;
use tables::Known;

/// The report of the run in `dir`.
///
/// # Errors
/// `Io`, `Invalid` or `Unsupported` with the file that cannot be read.
pub fn analyse(dir: &Path) -> Result<Report> {
    let directory = Directory::read(dir)?;
    let run = &directory.run;
    let of_cases: Vec<(&Case, Vec<Measurement>)> =
        run.cases.iter().map(|case| (case, directory.measurements(case))).collect();
    let what_if = what_if::of_run(&directory, &of_cases);
    // Figures of a server that is slowed down are not its own.
    let of_cases = if what_if.is_some() { Vec::new() } else { of_cases };
    let maxima: Vec<_> = of_cases
        .iter()
        .filter_map(|(case, measurements)| maxima::maximum(case, measurements))
        .collect();
    let (mut figures, mut spectra) = (Vec::new(), Vec::new());
    let mut of_median = OfMedian::default();
    for (case, measurements) in &of_cases {
        let (of_case, spectra_of_case) = figures::figures(case, &directory.attempts, measurements);
        figures.extend(of_case);
        spectra.extend(spectra_of_case);
        of_median.add(&directory, case, measurements);
    }
    let known = Known { run, of_cases: &of_cases, maxima: &maxima, figures: &figures };
    let mut report = Report {
        format: model::FORMAT.to_owned(),
        version: model::VERSION,
        verdict: Vec::new(),
        warnings: Vec::new(),
        environment: environment::environment(run),
        curves: curves::curves(run, &of_cases),
        // Their intervals are of another kind and would seem to contradict those of the sides.
        comparisons: if run.comparison.is_some() {
            Vec::new()
        } else {
            tables::comparisons(&known)
        },
        sides: sides::sides(&directory, &of_cases),
        interventions: interventions::of_run(&directory, &of_cases),
        what_if,
        sweeps: tables::sweeps(&known),
        spectra,
        layers: of_median.layers,
        time_lines: of_median.time_lines,
        known: tables::known_rows(&known),
        observations: Vec::new(),
        wrk2: of_median.wrk2,
        files: files(&directory),
        run: run.clone(),
        attempts: directory.attempts.clone(),
        maxima,
        figures,
    };
    report.warnings = sentences::warnings(&report);
    report.warnings.extend(sentences::damages(&directory.damaged.borrow()));
    report.observations = sentences::observations(&report);
    let trust = || sentences::trust(&report);
    report.verdict = match (&report.sides, &report.interventions, &report.what_if) {
        (Some(sides), _, _) => side_sentences::verdict(sides, trust()),
        (None, Some(found), _) => intervention_sentences::verdict(&report, found, trust()),
        (None, None, Some(found)) => what_if_sentences::verdict(&report, found, trust()),
        (None, None, None) => sentences::verdict(&report),
    };
    Ok(report)
}

/// What is shown of one attempt of each case: the one whose p99 is the median of the repeats.
#[derive(Default)]
struct OfMedian {
    layers: Vec<Layers>,
    time_lines: Vec<TimeLine>,
    wrk2: Vec<Block>,
}

impl OfMedian {
    fn add(&mut self, directory: &Directory, case: &Case, measurements: &[Measurement]) {
        let Some(measurement) = of_median_p99(measurements) else { return };
        // Of an external generator there is nothing but a number of responses.
        if case.kind == PhaseKind::Command {
            return;
        }
        let number = measurement.attempt.number;
        self.wrk2.extend(wrk2_text(&directory.run, case, measurement));
        let recording = directory.unless_damaged(number, directory.recording(number)).flatten();
        if let Some(recording) = &recording {
            self.layers.extend(layers::layers(case, measurement, recording));
        }
        let events = directory.unless_damaged(number, directory.events(number));
        let events = events.unwrap_or_default();
        let log = directory.file(number, "load.hlog");
        let line = time_line::time_line(case, measurement, &log, &events, recording.is_some());
        let Some(line) = directory.unless_damaged(number, line) else { return };
        self.time_lines.push(line);
    }
}

/// What `kvant load -L` would have printed of the last phase.
fn wrk2_text(run: &Run, case: &Case, measurement: &Measurement) -> Option<Block> {
    let outcome = &measurement.load.phases.last()?.outcome;
    let workload = run.workloads.iter().find(|workload| workload.name == case.workload);
    let config = &measurement.load.config;
    let header = wrk2::header(&wrk2::Header {
        url: &config.urls.join(" "),
        duration: outcome.phase.duration,
        thread_count: workload.map_or(config.thread_count, |workload| workload.thread_count),
        connection_count: config.connection_count,
    });
    let parts = wrk2::Parts { latency: true, ..wrk2::Parts::default() };
    Some(Block {
        case: case.id,
        attempt: measurement.attempt.number,
        text: header + &wrk2::body(outcome, parts),
    })
}

/// The raw files that a reader may want, relative to the run directory.
fn files(directory: &Directory) -> Vec<String> {
    let names = ["load.json", "load.hlog", "beside.json", "beside.hlog", "watch.json"];
    let of_kvant = [
        "stats.json",
        "events.json",
        "history.json",
        "trials.json",
        "what-if.json",
        "profile.kprof",
    ];
    let mut files = vec!["plan.toml".to_owned(), "run.json".into(), "journal.jsonl".into()];
    for attempt in &directory.attempts {
        for name in names.into_iter().chain(of_kvant) {
            if host::is_file(&directory.file(attempt.number, name)) {
                files.push(format!("{}/{name}", Directory::dir_of(attempt.number)));
            }
        }
    }
    files
}

#[cfg(test)]
mod tests;
