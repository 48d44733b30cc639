//! The functions of one file: an executable, a library, or `[vdso]`.

use super::{identity, vdso};
use crate::elf::Layout;
use crate::recording::{Function, Module};
use addr2line::Loader;
use std::path::{Path, PathBuf};

/// Where systems install separate debug files, by build id.
const DEBUG_DIR: &str = "/usr/lib/debug";

/// The source of a module's names.
pub(super) enum Program {
    /// A file, and its separate debug file with debug information and all symbols.
    File {
        layout: Layout,
        loader: Box<Loader>,
        debug_file: Option<Box<Loader>>,
    },
    /// The symbol table of `[vdso]`: offsets and names, in order.
    Vdso(Vec<(u64, String)>),
    Nameless,
}

impl Program {
    /// Opens the file that `module` of the process `process_id` was mapped from. An error is a
    /// sentence that says why its functions have no names.
    pub(super) fn open(module: &Module, process_id: u32) -> Result<Program, String> {
        Program::open_with(module, process_id, Path::new(DEBUG_DIR))
    }

    /// Like [`Program::open`], with debug files below `debug_dir`.
    pub(super) fn open_with(
        module: &Module,
        process_id: u32,
        debug_dir: &Path,
    ) -> Result<Program, String> {
        let path = &module.path;
        if path == "[vdso]" {
            return vdso::functions()
                .map(Program::Vdso)
                .map_err(|error| format!("{path}: {error}"));
        }
        if !path.starts_with('/') {
            // Anonymous memory, such as code of a just-in-time compiler.
            return Ok(Program::Nameless);
        }
        let mut problem = String::new();
        for candidate in candidates(module, process_id) {
            match Layout::read(&candidate) {
                Ok(layout) if layout.build_id == module.build_id => {
                    return match Loader::new(&candidate) {
                        Ok(loader) => Ok(Program::File {
                            debug_file: open_debug_file(&layout, debug_dir),
                            layout,
                            loader: Box::new(loader),
                        }),
                        Err(error) => Err(format!("{path}: {error}")),
                    };
                }
                Ok(_) => problem = format!("{path}: not the build that ran (the build ids differ)"),
                Err(error) if problem.is_empty() => problem = format!("{path}: {error}"),
                Err(_) => {}
            }
        }
        Err(problem)
    }

    /// The functions at `address` of the process, innermost first.
    pub(super) fn functions(&self, module: Option<&Module>, address: u64) -> Vec<Function> {
        let Some(module) = module else {
            return vec![Function::new(format!("{address:#x}"), "")];
        };
        let offset = address - module.start;
        let named = match self {
            Program::File { layout, loader, debug_file } => {
                let in_file = module.file_offset_bytes.saturating_add(offset);
                layout.address_of(in_file).and_then(|address| {
                    // A stripped file names only its exports.
                    let mut loaders = debug_file.iter().chain([loader]);
                    loaders.find_map(|loader| functions_at(loader, address, &module.path))
                })
            }
            Program::Vdso(functions) => {
                let after = functions.partition_point(|(start, _)| *start <= offset);
                functions[..after].last().map(|(_, name)| vec![Function::new(name, &module.path)])
            }
            Program::Nameless => None,
        };
        named.unwrap_or_else(|| match module.path.rsplit('/').next().unwrap_or_default() {
            "" => vec![Function::new(format!("{address:#x}"), "")],
            // One function for the whole module: a row for each address says nothing.
            file_name => vec![Function::new(file_name, &module.path)],
        })
    }
}

/// Where a module's file may be: at its path; if the file was replaced, at the process's link to
/// it; and this process may run the same program.
fn candidates(module: &Module, process_id: u32) -> Vec<PathBuf> {
    let path = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
    let mut candidates = vec![PathBuf::from(path)];
    if !module.build_id.is_empty() {
        candidates.push(PathBuf::from(format!("/proc/{process_id}/exe")));
        candidates.extend(identity::own_file(&module.build_id));
    }
    candidates
}

/// Opens the debug file of a program with this layout, where distributions install it:
/// `.build-id/ab/cdef.debug`. Without it the program's own symbols are used.
fn open_debug_file(layout: &Layout, debug_dir: &Path) -> Option<Box<Loader>> {
    let (first, rest) = layout.build_id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let path = debug_dir.join(format!(".build-id/{first:02x}/{}.debug", identity::hex(rest)));
    let is_of_program = Layout::read(&path).is_ok_and(|found| found.build_id == layout.build_id);
    is_of_program.then(|| Loader::new(&path).ok().map(Box::new)).flatten()
}

fn functions_at(loader: &Loader, address: u64, path: &str) -> Option<Vec<Function>> {
    let symbol = || loader.find_symbol(address).map(demangled);
    let mut functions = Vec::new();
    let mut is_mangled = false;
    // Debug information that cannot be read counts as missing: the symbol table remains.
    if let Ok(mut frames) = loader.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            is_mangled =
                name.as_ref().is_some_and(|name| rustc_demangle::try_demangle(name).is_ok());
            let Some(name) = name.map(|name| demangled(&name)).or_else(symbol) else {
                continue;
            };
            let mut function = Function::new(name, "");
            if let Some(location) = &frame.location {
                function.file = location.file.unwrap_or_default().to_owned();
                function.line = location.line.unwrap_or_default();
            }
            functions.push(function);
        }
    }
    // The outermost function comes last, and only it is in the symbol table, with its whole name:
    // debug information of line tables omits the modules of Rust functions.
    match (functions.last_mut(), symbol()) {
        (None, symbol) => return symbol.map(|name| vec![Function::new(name, path)]),
        (Some(function), Some(symbol)) if !is_mangled && symbol.contains("::") => {
            function.name = symbol;
        }
        (Some(_), _) => {}
    }
    Some(functions)
}

/// A readable name. `{:#}` omits the hash that tells equal paths apart.
fn demangled(name: &str) -> String {
    match rustc_demangle::try_demangle(name) {
        Ok(demangled) => format!("{demangled:#}"),
        Err(_not_rust) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
