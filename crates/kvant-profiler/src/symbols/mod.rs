//! Names for addresses: functions with what the compiler inlined into them, files and lines.
//!
//! An address belongs to the module whose range holds it. Its names come from the module's file and
//! from what was put apart from it (`/usr/lib/debug/.build-id/ab/cdef.debug`): from debug
//! information, else from the table of symbols, else from that of exported symbols, each only
//! within its size; those of the kernel from `/proc/kallsyms`, as far as the system shows them. A
//! file is believed only if its build id is the recording's. All that a module leaves without a
//! name is one function, called by the module's file.
//!
//! A return address is looked up one byte earlier: that is in the call, which may be the last
//! instruction of its function.
//!
//! Reading debug information takes seconds and tens of megabytes for a large program: it is for
//! threads that nobody waits for, and who goes on for long after it lets [`give_back`] return the
//! memory.

mod elf;
#[expect(unsafe_code, reason = "asks the C library for what the standard library cannot")]
mod heap;
mod identity;
mod kernel;
mod program;
mod sampler;

pub use heap::give_back;
pub use identity::{Identities, visible};

use crate::recording::{Frame, Function, Module, Recording};
use program::Program;
use std::collections::BTreeMap;

/// What became of the addresses of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Addresses.
    pub frame_count: usize,
    /// Those that have the name of a function.
    pub named_count: usize,
    /// Why others have none, a sentence a file, for people.
    pub problems: Vec<String>,
}

/// Gives the frames of `recording` their names, unless they have them.
pub fn resolve(recording: &mut Recording) -> Resolved {
    let mut resolved = Resolved { frame_count: recording.frames.len(), ..Resolved::default() };
    if !recording.needs_symbols() {
        resolved.named_count = resolved.frame_count;
        return resolved;
    }
    let mut symbols = vec![Vec::new(); recording.frames.len()];
    let kernel: Vec<usize> = indices(&recording.frames, |frame| frame.is_kernel);
    resolved.named_count +=
        kernel::name_all(&recording.frames, &kernel, &mut symbols, &mut resolved.problems);
    for (path, frames) in by_file(recording) {
        let modules: Vec<&Module> = of_file(recording, path).collect();
        let program = match modules.first() {
            Some(module) => Program::open(module, recording.facts.process_id),
            None => Ok(Program::nameless()),
        };
        let program = program.unwrap_or_else(|problem| {
            resolved.problems.push(problem);
            Program::nameless()
        });
        for index in frames {
            let probe = probe(&recording.frames[index]);
            let module = modules.iter().find(|module| holds(module, probe)).copied();
            let (functions, is_named) = program.functions(module, probe);
            resolved.named_count += usize::from(is_named);
            symbols[index] = functions;
        }
    }
    recording.symbols = symbols;
    sampler::take_off(recording);
    resolved
}

/// Where to look up a frame.
fn probe(frame: &Frame) -> u64 {
    frame.address.saturating_sub(u64::from(frame.is_return))
}

fn holds(module: &Module, address: u64) -> bool {
    (module.start..module.end).contains(&address)
}

fn indices(frames: &[Frame], is_wanted: impl Fn(&Frame) -> bool) -> Vec<usize> {
    let wanted = frames.iter().enumerate().filter(|(_, frame)| is_wanted(frame));
    wanted.map(|(index, _)| index).collect()
}

fn of_file<'a>(
    recording: &'a Recording,
    path: Option<&'a str>,
) -> impl Iterator<Item = &'a Module> {
    let modules = recording.facts.modules.iter();
    modules.filter(move |module| Some(&module.path[..]) == path)
}

/// The frames of the process itself by the file that they are in, in the order of their addresses:
/// neighbours are in the same part of the debug information. `None`: in no module.
fn by_file(recording: &Recording) -> BTreeMap<Option<&str>, Vec<usize>> {
    let mut modules: Vec<&Module> = recording.facts.modules.iter().collect();
    modules.sort_by_key(|module| module.start);
    let mut by_file: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for index in indices(&recording.frames, |frame| !frame.is_kernel) {
        let probe = probe(&recording.frames[index]);
        let after = modules.partition_point(|module| module.start <= probe);
        let module = modules[..after].last().filter(|module| holds(module, probe));
        let path = module.map(|module| &module.path[..]);
        by_file.entry(path).or_default().push(index);
    }
    for frames in by_file.values_mut() {
        frames.sort_unstable_by_key(|&index| recording.frames[index].address);
    }
    by_file
}

/// A name as people write it: `{:#}` leaves out the hash that tells apart what has the same name.
fn demangled(name: &str) -> String {
    match rustc_demangle::try_demangle(name) {
        Ok(demangled) => format!("{demangled:#}"),
        Err(_not_rust) => name.to_owned(),
    }
}

/// The name of last resort.
fn nameless(name: String, file: &str) -> Vec<Function> {
    vec![Function { name, file: file.to_owned(), line: 0 }]
}

#[cfg(test)]
mod tests;
