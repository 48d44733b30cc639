use super::*;
use crate::recording::{Frame, Kind, Sample, Stack};
use kvant_base::tag::Tag;

/// A recording with one sample. Its frames, and the functions of each, are given innermost first.
fn recording(is_interrupted: bool, frames: &[&[&str]]) -> Recording {
    let mut recording = Recording {
        names: vec![String::new()],
        stacks: vec![Stack { parent: 0, frame: 0 }],
        ..Recording::default()
    };
    for (index, names) in frames.iter().rev().enumerate() {
        let is_innermost = index + 1 == frames.len();
        recording.frames.push(Frame {
            address: 0x1000 + index as u64,
            is_kernel: false,
            is_return: !(is_interrupted && is_innermost),
        });
        recording.stacks.push(Stack { parent: index as u32, frame: index as u32 });
        let function =
            |name: &&str| Function { name: (*name).to_owned(), file: String::new(), line: 0 };
        recording.symbols.push(names.iter().map(function).collect());
    }
    recording.samples.push(Sample {
        kind: Kind::Alloc,
        time_ns: 0,
        duration_ns: 0,
        thread: 0,
        tag: Tag::default(),
        name: 0,
        stack: frames.len() as u32,
        weight: 1,
        is_live: false,
    });
    recording
}

/// The functions of the sample's stack, innermost first.
fn functions(recording: &Recording) -> Vec<&str> {
    let mut names = Vec::new();
    let mut at = recording.samples[0].stack;
    while at != 0 {
        let stack = recording.stacks[at as usize];
        let functions = &recording.symbols[stack.frame as usize];
        names.extend(functions.iter().map(|function| &function.name[..]));
        at = stack.parent;
    }
    names
}

const ALLOC: &str =
    "<kvant_profiler::collect::alloc::Allocator as core::alloc::global::GlobalAlloc>::alloc";
const ENDS: &str =
    "<kvant_profiler::collect::wait::Listener as kvant_base::wait::WaitListener>::ends";
const WITH: &str = "<std::thread::local::LocalKey<T>>::with";
const DROP: &str = "core::ptr::drop_in_place<core::option::Option<kvant_base::wait::Waiting>>";

#[test]
fn a_stack_ends_at_the_caller_of_the_allocator() {
    let mut recording = recording(
        false,
        &[
            &["kvant_profiler::collect::alloc::sample"],
            &["kvant_profiler::collect::alloc::watched", ALLOC, "__rust_alloc"],
            &["main"],
        ],
    );
    remove(&mut recording);
    assert_eq!(functions(&recording), ["__rust_alloc", "main"]);
    // A second call changes nothing.
    remove(&mut recording);
    assert_eq!(functions(&recording), ["__rust_alloc", "main"]);
}

#[test]
fn functions_between_those_of_the_sampler_are_removed_too() {
    let mut recording = recording(
        false,
        &[
            &["kvant_profiler::collect::wait::Listener::ends::{{closure}}"],
            &[WITH],
            &[ENDS],
            &[DROP, "kvant_base::lock::park"],
            &[WITH],
            &["main"],
        ],
    );
    remove(&mut recording);
    assert_eq!(functions(&recording), ["kvant_base::lock::park", WITH, "main"]);
}

#[test]
fn an_interrupted_sampler_stays() {
    let mut recording = recording(true, &[&["kvant_profiler::collect::alloc::watched"], &["main"]]);
    remove(&mut recording);
    assert_eq!(functions(&recording), ["kvant_profiler::collect::alloc::watched", "main"]);
}

#[test]
fn stacks_without_a_sampler_are_unchanged() {
    let mut recording = recording(false, &[&[WITH], &["main"]]);
    remove(&mut recording);
    assert_eq!(functions(&recording), [WITH, "main"]);
}
