//! The functions of one file: an executable, a library, or the code that the kernel lends.

use super::elf::{self, Layout};
use super::{demangled, identity, nameless};
use crate::recording::{Function, Module};
use addr2line::Loader;
use std::path::{Path, PathBuf};

/// Where systems keep debug information that is apart from its programs, by their build ids.
const DEBUG_DIR: &str = "/usr/lib/debug";

/// Where the names of a module are.
pub(super) enum Program {
    /// In a file, and in what was put apart from it: debug information and the table of all
    /// symbols.
    File { layout: Layout, loader: Box<Loader>, apart: Option<Box<Loader>> },
    /// In the table of symbols of `[vdso]`: offsets and names, in order.
    Vdso(Vec<(u64, String)>),
    /// Nowhere.
    Nameless,
}

impl Program {
    pub(super) fn nameless() -> Program {
        Program::Nameless
    }

    /// Opens what `module` of the process `process_id` was mapped from.
    ///
    /// # Errors
    /// A sentence: why its functions stay without names.
    pub(super) fn open(module: &Module, process_id: u32) -> Result<Program, String> {
        Program::open_with(module, process_id, Path::new(DEBUG_DIR))
    }

    /// As [`Program::open`], with what is apart from its program below `debug_dir`.
    pub(super) fn open_with(
        module: &Module,
        process_id: u32,
        debug_dir: &Path,
    ) -> Result<Program, String> {
        let path = &module.path;
        if path == "[vdso]" {
            return elf::vdso_functions()
                .map(Program::Vdso)
                .map_err(|error| format!("{path}: {error}"));
        }
        if !path.starts_with('/') {
            // Anonymous memory, such as what a just-in-time compiler makes: there is no file.
            return Ok(Program::Nameless);
        }
        let mut problem = String::new();
        for candidate in candidates(module, process_id) {
            match Layout::read(&candidate) {
                Ok(layout) if layout.build_id == module.build_id => {
                    return match Loader::new(&candidate) {
                        Ok(loader) => Ok(Program::File {
                            apart: apart(&layout, debug_dir),
                            layout,
                            loader: Box::new(loader),
                        }),
                        Err(error) => Err(format!("{path}: {error}")),
                    };
                }
                Ok(_) => {
                    problem = format!(
                        "{path}: another build than the one that ran (the build ids differ)"
                    )
                }
                Err(error) if problem.is_empty() => problem = format!("{path}: {error}"),
                Err(_) => {}
            }
        }
        Err(problem)
    }

    /// The functions at `address` of the process, the innermost first, and whether they have names.
    pub(super) fn functions(&self, module: Option<&Module>, address: u64) -> (Vec<Function>, bool) {
        let Some(module) = module else {
            return (nameless(format!("{address:#x}"), ""), false);
        };
        let file_name = module.path.rsplit('/').next().unwrap_or_default();
        let offset = address - module.start;
        let in_file = module.file_offset_bytes.saturating_add(offset);
        let named = match self {
            Program::File { layout, loader, apart } => {
                layout.address_of(in_file).and_then(|probe| {
                    // A stripped file names only what it exports.
                    let loaders = apart.iter().chain([loader]);
                    let mut found =
                        loaders.map(|loader| functions_of_file(loader, probe, &module.path));
                    found.find_map(|functions| functions)
                })
            }
            Program::Vdso(functions) => {
                let after = functions.partition_point(|(start, _)| *start <= offset);
                functions[..after].last().map(|(_, name)| nameless(name.clone(), &module.path))
            }
            Program::Nameless => None,
        };
        match named {
            Some(functions) => (functions, true),
            None if file_name.is_empty() => (nameless(format!("{address:#x}"), ""), false),
            // All that a library hides is one function: a row for each address says nothing.
            None => (nameless(file_name.to_owned(), &module.path), false),
        }
    }
}

/// Where the file of a module may be: at its path; if that has been replaced since, at the
/// process's own link to it; and the same program may be what this process runs.
fn candidates(module: &Module, process_id: u32) -> Vec<PathBuf> {
    let path = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
    let mut candidates = vec![PathBuf::from(path)];
    if !module.build_id.is_empty() {
        candidates.push(PathBuf::from(format!("/proc/{process_id}/exe")));
        candidates.extend(identity::own_file(&module.build_id));
    }
    candidates
}

/// The file with the debug information that was taken out of a program with this layout, if it is
/// installed.
fn apart(layout: &Layout, debug_dir: &Path) -> Option<Box<Loader>> {
    let path = debug_file(&layout.build_id, debug_dir)?;
    let is_of_program = Layout::read(&path).is_ok_and(|found| found.build_id == layout.build_id);
    // Without it the program's own table is left.
    is_of_program.then(|| Loader::new(&path).ok().map(Box::new)).flatten()
}

/// Where distributions put it: `.build-id/ab/cdef.debug`.
fn debug_file(build_id: &[u8], debug_dir: &Path) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let name = format!(".build-id/{first:02x}/{}.debug", identity::hex(rest));
    Some(debug_dir.join(name))
}

fn functions_of_file(loader: &Loader, probe: u64, path: &str) -> Option<Vec<Function>> {
    let symbol = || loader.find_symbol(probe).map(demangled);
    let mut functions = Vec::new();
    let mut is_whole = false;
    // Debug information that cannot be read is as good as none: the table of symbols is left.
    if let Ok(mut frames) = loader.find_frames(probe) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let (file, line) = match &frame.location {
                Some(location) => {
                    (location.file.unwrap_or_default(), location.line.unwrap_or_default())
                }
                None => ("", 0),
            };
            is_whole = name.as_ref().is_some_and(|name| rustc_demangle::try_demangle(name).is_ok());
            let Some(name) = name.map(|name| demangled(&name)).or_else(symbol) else {
                continue;
            };
            functions.push(Function { name, file: file.to_owned(), line });
        }
    }
    // The function itself comes last, and it alone is in the table of symbols. There its name is
    // whole; debug information of line tables only leaves out the modules of Rust's functions.
    match (functions.last_mut(), symbol()) {
        (None, symbol) => return symbol.map(|name| nameless(name, path)),
        (Some(function), Some(symbol)) if !is_whole && symbol.contains("::") => {
            function.name = symbol;
        }
        (Some(_), _) => {}
    }
    Some(functions)
}

#[cfg(test)]
mod tests;
