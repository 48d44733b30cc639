//! Copies of data directories.

use kvant_base::{Error, Result};
use std::fs::{self, File};
use std::path::Path;

/// How files were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// Blocks are shared until they are changed.
    Reflink,
    /// Bytes were copied.
    Bytes,
}

impl Copied {
    pub(super) fn words(self) -> &'static str {
        match self {
            Copied::Reflink => "by reflinks",
            Copied::Bytes => "byte by byte",
        }
    }
}

/// Copies a directory with its files and directories to the new directory `to`. Other kinds of
/// files, such as sockets, are left out.
///
/// # Errors
/// `Io` and `NoSpace` with the file.
pub(super) fn copy(from: &Path, to: &Path) -> Result<Copied> {
    fs::create_dir_all(to).map_err(|error| Error::io("create", to, error))?;
    let read = |error| Error::io("read", from, error);
    let mut how = Copied::Reflink;
    let mut file_count = 0;
    for entry in fs::read_dir(from).map_err(read)? {
        let entry = entry.map_err(read)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(read)?;
        let copied = if kind.is_dir() {
            copy(&source, &target)?
        } else if kind.is_file() {
            copy_file(&source, &target)?
        } else {
            continue;
        };
        file_count += 1;
        if copied == Copied::Bytes {
            how = Copied::Bytes;
        }
    }
    Ok(if file_count == 0 { Copied::Bytes } else { how })
}

fn copy_file(from: &Path, to: &Path) -> Result<Copied> {
    let failed = |error| Error::io("copy to", to, error);
    let source = File::open(from).map_err(|error| Error::io("open", from, error))?;
    let target = File::create(to).map_err(failed)?;
    if rustix::fs::ioctl_ficlone(&target, &source).is_ok() {
        return Ok(Copied::Reflink);
    }
    drop((source, target));
    fs::copy(from, to).map_err(failed)?;
    Ok(Copied::Bytes)
}

#[cfg(test)]
mod tests;
