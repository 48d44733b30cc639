//! What frames and threads are called in the formats of other programs.

use crate::recording::{Function, Recording};
use std::borrow::Cow;

/// The functions of a frame, the innermost first: at least one. Without symbols it is called by its
/// address.
pub(super) fn functions(recording: &Recording, frame: u32) -> Cow<'_, [Function]> {
    match recording.symbols.get(frame as usize) {
        Some(functions) if !functions.is_empty() => Cow::Borrowed(functions),
        _ => {
            let address = recording.frames[frame as usize].address;
            let function = Function { name: format!("{address:#x}"), file: String::new(), line: 0 };
            Cow::Owned(vec![function])
        }
    }
}

/// What stands for CPU time of the process that no sample stands for.
pub(super) const NOT_SAMPLED: &str = "[not sampled]";

/// The name of a thread; its number where it has none.
pub(super) fn thread(recording: &Recording, thread: u32) -> String {
    let thread = &recording.threads[thread as usize];
    match &thread.name[..] {
        "" => format!("thread {}", thread.id),
        name => name.to_owned(),
    }
}

/// The frames of a stack, the innermost first.
pub(super) fn frames(recording: &Recording, stack: u32) -> impl Iterator<Item = u32> {
    let is_node = |&stack: &u32| stack != 0;
    let nodes = std::iter::successors(Some(stack).filter(is_node), move |&stack| {
        Some(recording.stacks[stack as usize].parent).filter(is_node)
    });
    nodes.map(|stack| recording.stacks[stack as usize].frame)
}
