//! Names for addresses: functions, with those inlined into them, files and lines.
//!
//! An address belongs to the module that contains it. Its names come from the module's file and
//! from the separate debug file (`/usr/lib/debug/.build-id/ab/cdef.debug`): debug information
//! first, then the symbol table, then the table of exported symbols; a symbol names only addresses
//! within its size. Kernel names come from `/proc/kallsyms`, as far as it is readable. A file is
//! used only if its build id is the recording's. All addresses of a module that remain without a
//! name become one function with the name of the module's file.
//!
//! Reading debug information takes seconds and tens of megabytes for a large program, so it belongs
//! on a thread that no request waits for. A long-lived process calls [`release_memory`] afterwards.

#[expect(unsafe_code, reason = "asks the C library for what the standard library cannot")]
mod heap;
mod identity;
mod kernel;
mod modules;
mod program;
mod sampler;
mod vdso;

pub use heap::release_memory;
pub use identity::{Identities, visible};

use crate::recording::{Module, Recording};
use program::Program;

/// The result of resolving a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Number of addresses.
    pub frame_count: usize,
    /// Number of those with the name of a function.
    pub named_count: usize,
    /// Why others have none: one sentence a file.
    pub problems: Vec<String>,
}

/// Names the frames of `recording`, unless they have names.
pub fn resolve(recording: &mut Recording) -> Resolved {
    let mut resolved = Resolved { frame_count: recording.frames.len(), ..Resolved::default() };
    if !recording.needs_symbols() {
        resolved.named_count = resolved.frame_count;
        return resolved;
    }
    let mut symbols = vec![Vec::new(); recording.frames.len()];
    resolved.named_count +=
        kernel::name_all(&recording.frames, &mut symbols, &mut resolved.problems);
    for (path, frames) in modules::frames_by_file(recording) {
        let modules: Vec<&Module> = modules::of_file(recording, path).collect();
        let program = match modules.first() {
            Some(module) => Program::open(module, recording.facts.process_id),
            None => Ok(Program::Nameless),
        };
        let program = program.unwrap_or_else(|problem| {
            resolved.problems.push(problem);
            Program::Nameless
        });
        for index in frames {
            let address = recording.frames[index].lookup_address();
            let module = modules.iter().find(|module| module.contains(address)).copied();
            let (functions, is_named) = program.functions(module, address);
            resolved.named_count += usize::from(is_named);
            symbols[index] = functions;
        }
    }
    recording.symbols = symbols;
    sampler::remove(recording);
    resolved
}

#[cfg(test)]
mod tests;
