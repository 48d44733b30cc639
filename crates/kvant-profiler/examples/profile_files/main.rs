//! Prints the pages and the contents of synthetic recordings as one JSON object, so that `cargo
//! xtask profile-check` can compare what a browser shows with its own sums.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

mod synthetic;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kvant_profiler::recording::{Kind, Recording};
use kvant_profiler::render;
use serde_json::{Value, json};
use synthetic::Plan;

fn main() {
    let base = synthetic::recording(Plan::loaded(1));
    let other = synthetic::recording(Plan { compaction_factor: 3, seconds: 40, ..Plan::loaded(1) });
    let short = synthetic::recording(Plan { seconds: 6, ..Plan::loaded(2) });
    let mut files = json!({
        "made-up.html": render::html(&base),
        "made-up-difference.html": render::html_difference(&base, &other, Some([2000.0, 1000.0])),
        "made-up-short.html": render::html(&short),
        "made-up.json": [plain(&base), plain(&other)],
        "made-up.pb.gz.base64": BASE64_STANDARD.encode(render::pprof(&base)),
    });
    for kind in Kind::ALL {
        files[format!("made-up.{}.collapsed", kind.name())] = render::collapsed(&base, kind).into();
    }
    println!("{files}");
}

/// A recording as plain JSON: a stack is its parent and the names at its address, outermost first.
fn plain(recording: &Recording) -> Value {
    let names = |frame: u32| -> Vec<&str> {
        let functions = &recording.symbols[frame as usize];
        functions.iter().rev().map(|function| function.name.as_str()).collect()
    };
    let stacks = recording.stacks.iter().map(|stack| json!([stack.parent, names(stack.frame)]));
    let stacks: Vec<Value> = stacks.collect();
    let samples = recording.samples.iter().map(|sample| {
        json!({
            "kind": sample.kind.name(),
            "start_ns": sample.time_ns,
            "end_ns": sample.time_ns + sample.duration_ns,
            "weight": sample.weight,
            "is_live": sample.is_live,
            "stack": sample.stack,
            "name": recording.names[sample.name as usize],
            "thread": recording.threads[sample.thread as usize].name,
            "activity": sample.tag.activity.name(),
        })
    });
    let samples: Vec<Value> = samples.collect();
    let facts = &recording.facts;
    let spans: Vec<Value> = recording.spans.iter().map(|span| json!(span.fields)).collect();
    json!({
        "duration_ns": facts.duration_ns,
        "process_cpu_ns": facts.process_cpu_ns,
        "stacks": stacks,
        "samples": samples,
        "spans": spans,
    })
}
