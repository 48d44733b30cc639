//! The memory mappings of this process, from `/proc/self/maps`.

use std::io;
use std::path::Path;

/// One mapping.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The first address.
    pub(crate) start: usize,
    /// The address after the last.
    pub(crate) end: usize,
    /// Whether its contents may be executed.
    pub(crate) is_executable: bool,
    /// File offset of the first address.
    pub(crate) file_offset_bytes: u64,
    /// The file, or a name such as `[stack]`; empty for anonymous memory.
    pub(crate) name: String,
}

impl Mapping {
    /// Reads all mappings.
    ///
    /// # Errors
    /// `/proc` is not mounted.
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

#[cfg(test)]
mod tests;
