//! Prints pages of made-up reports, and what they are made of, as one JSON object, so that `cargo
//! xtask lab-check` can compare what a browser shows with its own sums.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

#[path = "../../tests/page/sample/mod.rs"]
mod sample;
#[path = "../../../kvant-profiler/examples/profile_files/synthetic.rs"]
mod synthetic;

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
        "report.json": report,
        "recording.json": plain(&recording),
    });
    println!("{files}");
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
