//! Prints pages of made-up reports, and what they are made of, as one JSON object, so that `cargo
//! xtask lab-check` can compare what a browser shows with its own sums.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

#[path = "../../tests/page/sample/mod.rs"]
mod sample;
#[path = "../../../kvant-profiler/examples/profile_files/synthetic.rs"]
mod synthetic;

use kvant_lab::model::{Curve, Report, Text, TimeLine};
use kvant_lab::record::RunState;
use kvant_lab::report::{self, Language};
use kvant_profiler::recording::Recording;
use serde_json::{Value, json};
use synthetic::Plan;

fn main() {
    let recording = synthetic::recording(Plan::loaded(1));
    let report = sample::report(&recording);
    let open = |_: &str| Some(recording.clone());
    let files = json!({
        "report.html": report::html(&report, &open, Language::English),
        "report-ru.html": report::html(&report, &open, Language::Russian),
        "report-sparse.html": report::html(&sparse(&report), &|_| None, Language::English),
        "report.json": report,
        "recording.json": plain(&recording),
    });
    println!("{files}");
}

/// What an interrupted run may leave: cases with little or nothing in them.
fn sparse(report: &Report) -> Report {
    let mut sparse = report.clone();
    sparse.run.state = RunState::Interrupted { reason: "Ctrl-C".to_owned() };
    sparse.run.ended_wall_ms = None;
    sparse.run.data = None;
    sparse.maxima.truncate(1);
    sparse.maxima[0].rate_per_s = None;
    sparse.maxima[0].interval_per_s = None;
    sparse.curves.truncate(1);
    sparse.curves[0].points.truncate(1);
    sparse.curves[0].usl = None;
    sparse.curves[0].usl_text = Text::default();
    // A server without the axes of the sweep.
    let other = Curve {
        subject: "selectors".to_owned(),
        cell: vec![String::new(); 2],
        ..sparse.curves[0].clone()
    };
    sparse.curves.push(other);
    sparse.figures.truncate(1);
    sparse.spectra.truncate(2);
    sparse.spectra[0].points.truncate(1);
    sparse.spectra[1].points.clear();
    sparse.comparisons.clear();
    sparse.sweeps.clear();
    sparse.layers.clear();
    sparse.known.clear();
    sparse.observations.clear();
    let whole = &report.time_lines[0];
    // Nothing at all; a late beginning and nothing else; a recording that cannot be read.
    let empty = TimeLine { length_ns: whole.length_ns, case: whole.case, ..TimeLine::default() };
    let late = TimeLine {
        columns: whole.columns[200..300].to_vec(),
        rows_ns: whole.rows_ns.clone(),
        ..empty.clone()
    };
    sparse.time_lines = vec![empty, late, whole.clone()];
    sparse
}

/// The samples of a recording: kind, start and end in nanoseconds, weight.
fn plain(recording: &Recording) -> Value {
    let samples = recording.samples.iter().map(|sample| {
        json!([
            sample.kind.name(),
            sample.time_ns,
            sample.time_ns + sample.duration_ns,
            sample.weight
        ])
    });
    json!({
        "offset_ns": -(sample::RECORDING_LEAD_NS as i64),
        "duration_ns": recording.facts.duration_ns,
        "samples": samples.collect::<Vec<Value>>(),
    })
}
