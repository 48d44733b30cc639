//! Takes the sampler's own functions off the stacks of samples that a thread took of itself: what
//! allocated or waited is the one that called them.
//!
//! They are known by their names, since the compiler inlines some of them into others and into
//! their callers. Where a signal took the sample they stay: then it was they who ran.
//!
//! Threads: that of the caller.

use crate::recording::{Function, Recording};
use std::collections::HashMap;

/// Modules through which a thread comes to a sampler, as names begin.
const MODULES: [&str; 6] = [
    "kvant_profiler::collect::alloc::",
    "kvant_profiler::collect::anchor::",
    "kvant_profiler::collect::ring::",
    "kvant_profiler::collect::timer::",
    "kvant_profiler::collect::wait::",
    "kvant_base::wait::",
];

/// What is dropped when a wait ends.
const WAITING: &str = "kvant_base::wait::Waiting";

/// Lets the samples of `recording`, which has symbols, begin at whoever called a sampler.
pub(super) fn take_off(recording: &mut Recording) {
    let mut callers = HashMap::new();
    for index in 0..recording.samples.len() {
        let stack = recording.samples[index].stack;
        let caller = *callers.entry(stack).or_insert_with(|| caller_of_sampler(recording, stack));
        recording.samples[index].stack = caller;
    }
}

/// The stack without the sampler's functions at its inner end. Those that were inlined into their
/// caller lose their names there.
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
        match functions.iter().rposition(is_samplers) {
            // Others stand between its functions, such as those of the standard library that call
            // them.
            Some(outermost) if outermost + 1 == functions.len() => caller = node.parent,
            Some(outermost) => {
                functions.drain(..=outermost);
                return at;
            }
            None if is_between(functions) => {}
            None => break,
        }
        at = node.parent;
    }
    caller
}

fn is_samplers(function: &Function) -> bool {
    let ends_wait = || {
        function.name.starts_with("core::ptr::drop_in_place<") && function.name.contains(WAITING)
    };
    is_in(function, &MODULES) || ends_wait()
}

fn is_between(functions: &[Function]) -> bool {
    functions.iter().all(|function| is_in(function, &["std::thread::local::"]))
}

/// Whether one of `modules` is where the function is: of `<a::b as Trait>::f` the type says that.
fn is_in(function: &Function, modules: &[&str]) -> bool {
    let name = function.name.trim_start_matches('<');
    modules.iter().any(|module| name.starts_with(module))
}

#[cfg(test)]
mod tests;
