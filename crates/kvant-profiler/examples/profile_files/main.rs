//! Prints the pages of made-up recordings as one JSON object, and what is in the recordings, so that `cargo xtask profile-check` can
//! compare what a browser shows with sums of its own.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

mod synthetic;

use kvant_profiler::recording::Recording;
use kvant_profiler::render;
use serde_json::{Value, json};
use synthetic::Plan;

fn main() {
    let base = synthetic::recording(Plan::loaded(1));
    let other = synthetic::recording(Plan {
        compaction_factor: 3,
        seconds: 40,
        ..Plan::loaded(1)
    });
    let files = json!({
        "page.html": render::html(&base),
        "difference.html": render::html_difference(&base, &other),
        "recordings.json": [plain(&base), plain(&other)],
    });
    println!("{files}");
}

/// A recording without any encoding: stacks as lists of names, the outermost first.
fn plain(recording: &Recording) -> Value {
    let mut stacks: Vec<Vec<&str>> = vec![Vec::new()];
    for stack in &recording.stacks[1..] {
        let mut names = stacks[stack.parent as usize].clone();
        let functions = &recording.symbols[stack.frame as usize];
        names.extend(functions.iter().rev().map(|function| function.name.as_str()));
        stacks.push(names);
    }
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
    json!({ "duration_ns": recording.facts.duration_ns, "stacks": stacks, "samples": samples })
}
