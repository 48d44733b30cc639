//! A temporary directory.

use std::io;
use std::path::{Path, PathBuf};

/// A new directory that is removed on drop, with its contents.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(parent: &Path) -> io::Result<Scratch> {
        let path = parent.join(format!("kvant-engine-bench-{}", std::process::id()));
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        std::fs::create_dir(&path).map_err(named)?;
        Ok(Scratch(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} is left behind: {error}", self.0.display());
        }
    }
}
