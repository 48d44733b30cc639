//! The memory mappings of this process, from `/proc/self/maps`.

use crate::elf::Layout;
use crate::recording::Module;
use std::io;
use std::path::Path;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: usize,
    /// The address after the last.
    pub(crate) end: usize,
    pub(crate) is_executable: bool,
    /// File offset of the first address.
    pub(crate) file_offset_bytes: u64,
    /// The file, or a name such as `[stack]`; empty for anonymous memory.
    pub(crate) name: String,
}

impl Mapping {
    /// Reads all mappings.
    pub(crate) fn read_all() -> io::Result<Vec<Mapping>> {
        let text = kvant_env::host::read_text(Path::new("/proc/self/maps"))?;
        Ok(text.lines().filter_map(Mapping::parse).collect())
    }

    /// Parses `START-END ACCESS OFFSET DEVICE INODE NAME`.
    pub(crate) fn parse(line: &str) -> Option<Mapping> {
        let mut parts = line.splitn(6, ' ');
        let (start, end) = parts.next()?.split_once('-')?;
        let access = parts.next()?;
        let mapping = Mapping {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            is_executable: access.contains('x'),
            file_offset_bytes: u64::from_str_radix(parts.next()?, 16).ok()?,
            name: parts.nth(2).unwrap_or_default().trim_start().to_owned(),
        };
        (mapping.start < mapping.end).then_some(mapping)
    }

    #[cfg(feature = "collect")]
    pub(crate) fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// This process's own program, whatever has become of its path since it started.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// The modules of this process, its own program first.
pub(crate) fn own_modules() -> Vec<Module> {
    let program = rustix::fs::readlink(OWN_PROGRAM, Vec::new()).unwrap_or_default();
    let is_program = |path: &str| path.as_bytes() == program.as_bytes();
    let build_id = |path: &str| {
        let file = if is_program(path) { OWN_PROGRAM } else { path };
        Layout::read(Path::new(file)).map_or(Vec::new(), |layout| layout.build_id)
    };
    // Other executable memory, such as code of a just-in-time compiler, is no module.
    let is_module = |mapping: &Mapping| {
        mapping.is_executable && (mapping.name.starts_with('/') || mapping.name == "[vdso]")
    };
    let mappings = Mapping::read_all().unwrap_or_default().into_iter().filter(is_module);
    let mut modules: Vec<Module> = mappings
        .map(|mapping| Module {
            build_id: build_id(&mapping.name),
            path: mapping.name,
            start: mapping.start as u64,
            end: mapping.end as u64,
            file_offset_bytes: mapping.file_offset_bytes,
        })
        .collect();
    modules.sort_by_key(|module| !is_program(&module.path));
    modules
}

#[cfg(test)]
mod tests;
