//! Names of frames and threads in the formats of other programs.

use crate::recording::{Function, Recording};
use std::borrow::Cow;

/// The name for CPU time of the process that no sample accounts for.
pub(super) const NOT_SAMPLED: &str = "[not sampled]";

/// The functions of a frame, innermost first: at least one. Without symbols the address is the
/// name.
pub(super) fn functions(recording: &Recording, frame: u32) -> Vec<Cow<'_, Function>> {
    match recording.symbols.get(frame as usize) {
        Some(functions) if !functions.is_empty() => functions.iter().map(Cow::Borrowed).collect(),
        _ => {
            let address = recording.frames[frame as usize].address;
            vec![Cow::Owned(Function::new(format!("{address:#x}"), ""))]
        }
    }
}

/// The name of a thread; its id if it has none.
pub(super) fn thread(recording: &Recording, thread: u32) -> Cow<'_, str> {
    let thread = &recording.threads[thread as usize];
    match &thread.name[..] {
        "" => format!("thread {}", thread.id).into(),
        name => name.into(),
    }
}

/// The frames of a stack, innermost first.
pub(super) fn frames(recording: &Recording, stack: u32) -> impl Iterator<Item = u32> {
    let is_node = |&stack: &u32| stack != 0;
    let nodes = std::iter::successors(Some(stack).filter(is_node), move |&stack| {
        Some(recording.stacks[stack as usize].parent).filter(is_node)
    });
    nodes.map(|stack| recording.stacks[stack as usize].frame)
}
