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

/// Names the frames of `recording`, unless they have names. Returns why frames have no name: one
/// sentence per file.
pub fn resolve(recording: &mut Recording) -> Vec<String> {
    let mut problems = Vec::new();
    if !recording.needs_symbols() {
        return problems;
    }
    let mut symbols = vec![Vec::new(); recording.frames.len()];
    kernel::name_all(&recording.frames, &mut symbols, &mut problems);
    for (path, frames) in modules::frames_by_file(recording) {
        let modules: Vec<&Module> = modules::of_file(recording, path).collect();
        let program = match modules.first() {
            Some(module) => Program::open(module, recording.facts.process_id),
            None => Ok(Program::Nameless),
        };
        let program = program.unwrap_or_else(|problem| {
            problems.push(problem);
            Program::Nameless
        });
        for index in frames {
            let address = recording.frames[index].lookup_address();
            let module = modules.iter().find(|module| module.contains(address)).copied();
            symbols[index] = program.functions(module, address);
        }
    }
    recording.symbols = symbols;
    sampler::remove(recording);
    problems
}

#[cfg(test)]
mod tests;
