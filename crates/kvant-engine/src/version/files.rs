//! The files of a data directory.

use crate::format::{FileKind, FileNum, parse_file_name};
use kvant_base::{Error, Result};
use kvant_env::{DirEntry, Fs};
use std::path::Path;

/// A file of the engine, as its name and the directory describe it.
pub(crate) type Listed = (FileKind, FileNum, DirEntry);

/// The engine's files in `dir`.
pub(crate) fn list_files(fs: &dyn Fs, dir: &Path) -> Result<Vec<Listed>> {
    let entries = fs.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let ours = |entry: DirEntry| parse_file_name(&entry.name).map(|(kind, num)| (kind, num, entry));
    Ok(entries.into_iter().filter_map(ours).collect())
}
