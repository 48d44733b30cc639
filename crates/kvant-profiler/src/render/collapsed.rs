//! Collapsed stacks: a line a stack, as flame graph tools read them.
//!
//! `thread;activity/stage;outer;..;inner weight`, the lines in order. As in async-profiler, `_[i]`
//! marks a function that the compiler inlined into the one before it, and `_[k]` one of the kernel.
//! Semicolons in names become commas. CPU time that no sample stands for is a line of its own,
//! `[not sampled] weight`.

use super::names;
use crate::recording::{Kind, Recording};
use std::collections::{BTreeMap, HashMap};

/// The samples of one kind, whose weights are in its unit.
pub fn collapsed(recording: &Recording, kind: Kind) -> String {
    let mut weights: HashMap<_, u64> = HashMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.kind == kind) {
        let weight = weights.entry((sample.thread, sample.tag.code(), sample.stack)).or_default();
        *weight = weight.saturating_add(sample.weight);
    }
    let tags: HashMap<u16, _> =
        recording.samples.iter().map(|sample| (sample.tag.code(), sample.tag)).collect();
    // Addresses within one function are one line.
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for ((thread, tag, stack), weight) in weights {
        let tag = tags[&tag];
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
    let lines = lines.iter();
    lines.map(|(line, weight)| format!("{line} {weight}\n")).collect()
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

/// Text without what has a meaning in the format.
fn plain(text: &str) -> String {
    let plain = |character: char| match character {
        ';' => ',',
        _ if character.is_control() => ' ',
        _ => character,
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests;
