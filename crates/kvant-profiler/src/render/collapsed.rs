//! Collapsed stacks, as flame graph tools read them: one line a stack.
//!
//! `thread;activity/stage;outer;..;inner weight`, sorted. As in async-profiler, `_[i]` marks a
//! function inlined into the one before it, and `_[k]` a kernel function. Semicolons in names
//! become commas. CPU time that no sample accounts for is a line of its own, `[not sampled]
//! weight`.

use super::names;
use crate::recording::{Kind, Recording};
use kvant_base::tag::Tag;
use std::collections::{BTreeMap, HashMap};

/// Formats the samples of one kind, with weights in its unit.
pub fn collapsed(recording: &Recording, kind: Kind) -> String {
    let mut weights: HashMap<_, u64> = HashMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.kind == kind) {
        let weight = weights.entry((sample.thread, sample.tag.code(), sample.stack)).or_default();
        *weight = weight.saturating_add(sample.weight);
    }
    // Addresses within one function share a line.
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for ((thread, tag, stack), weight) in weights {
        let tag = Tag::of_code(tag);
        let mut line = plain(&names::thread(recording, thread));
        line.push_str(&format!(";{}/{}", tag.activity.name(), tag.stage.name()));
        push_stack(&mut line, recording, stack);
        let sum = lines.entry(line).or_default();
        *sum = sum.saturating_add(weight);
    }
    let not_sampled_ns = recording.not_sampled_ns();
    if kind == Kind::Cpu && not_sampled_ns > 0 {
        lines.insert(names::NOT_SAMPLED.to_owned(), not_sampled_ns);
    }
    lines.iter().map(|(line, weight)| format!("{line} {weight}\n")).collect()
}

fn push_stack(line: &mut String, recording: &Recording, stack: u32) {
    let mut frames: Vec<u32> = names::frames(recording, stack).collect();
    frames.reverse();
    for frame in frames {
        let functions = names::functions(recording, frame);
        let mark = if recording.frames[frame as usize].is_kernel { "_[k]" } else { "" };
        for (depth, function) in functions.iter().enumerate().rev() {
            let is_inlined = depth + 1 < functions.len();
            line.push(';');
            line.push_str(&plain(&function.name));
            line.push_str(if is_inlined { "_[i]" } else { mark });
        }
    }
}

/// `text` without the characters that the format gives a meaning.
fn plain(text: &str) -> String {
    text.replace(';', ",").replace(char::is_control, " ")
}

#[cfg(test)]
mod tests;
