//! Removes the sampler's own functions from stacks that a thread recorded itself: the caller of the
//! sampler is what allocated or waited.
//!
//! They are recognised by name, since the compiler inlines some into each other and into their
//! callers. In a sample taken by a signal they stay: the sampler was what ran.

use crate::recording::{Function, Recording};
use std::collections::HashMap;

/// Modules on the path into a sampler, as prefixes of names.
const MODULES: [&str; 7] = [
    "kvant_profiler::collect::alloc::",
    "kvant_profiler::collect::anchor::",
    "kvant_profiler::collect::record::",
    "kvant_profiler::collect::ring::",
    "kvant_profiler::collect::timer::",
    "kvant_profiler::collect::wait::",
    "kvant_base::wait::",
];

/// The type whose drop ends a wait.
const WAITING: &str = "kvant_base::wait::Waiting";

/// Lets the stacks of `recording`, which has symbols, end at the caller of the sampler.
pub(super) fn remove(recording: &mut Recording) {
    let mut callers = HashMap::new();
    for index in 0..recording.samples.len() {
        let stack = recording.samples[index].stack;
        let caller = *callers.entry(stack).or_insert_with(|| caller_of_sampler(recording, stack));
        recording.samples[index].stack = caller;
    }
}

/// The stack without the sampler's functions at its inner end. Functions of the sampler that were
/// inlined into their caller are removed from that frame's names.
fn caller_of_sampler(recording: &mut Recording, stack: u32) -> u32 {
    let innermost = recording.stacks[stack as usize].frame as usize;
    if stack == 0 || !recording.frames[innermost].is_return {
        return stack;
    }
    let mut caller = stack;
    let mut at = stack;
    while at != 0 {
        let node = recording.stacks[at as usize];
        let functions = &mut recording.symbols[node.frame as usize];
        match functions.iter().rposition(is_sampler) {
            // More may follow beyond functions in between, such as those of the standard library.
            Some(outermost) if outermost + 1 == functions.len() => caller = node.parent,
            Some(outermost) => {
                functions.drain(..=outermost);
                return at;
            }
            None if functions.iter().all(|function| is_in(function, &["std::thread::local::"])) => {
            }
            None => break,
        }
        at = node.parent;
    }
    caller
}

fn is_sampler(function: &Function) -> bool {
    let name = &function.name;
    is_in(function, &MODULES)
        || (name.starts_with("core::ptr::drop_in_place<") && name.contains(WAITING))
}

/// Whether the function is in one of `modules`. In `<a::b as Trait>::f` the type decides.
fn is_in(function: &Function, modules: &[&str]) -> bool {
    let name = function.name.trim_start_matches('<');
    modules.iter().any(|module| name.starts_with(module))
}

#[cfg(test)]
mod tests;
