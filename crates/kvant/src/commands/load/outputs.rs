//! The result files.
//!
//! Files are created before the load begins, so that a bad path is reported before the load and not
//! after it.

use super::settings::Results;
use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_load::report::hlog::HlogWriter;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

type File = Box<dyn Write + Send>;

/// A file that is being written through `W`; errors name it.
pub(super) struct Output<W> {
    path: PathBuf,
    writer: W,
}

pub(super) struct Outputs {
    pub(super) json: Option<Output<File>>,
    pub(super) hgrm: Option<Output<File>>,
    /// Flushed after each interval.
    pub(super) hlog: Option<Output<HlogWriter<File>>>,
}

impl Outputs {
    /// Creates the files.
    pub(super) fn create(results: &Results) -> Result<Outputs> {
        Ok(Outputs {
            hlog: create(results.hlog.as_deref(), HlogWriter::new)?,
            json: create(results.json.as_deref(), |file| file)?,
            hgrm: create(results.hgrm.as_deref(), |file| file)?,
        })
    }
}

fn create<W>(path: Option<&Path>, writer: fn(File) -> W) -> Result<Option<Output<W>>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let file = host::create_file(path).map_err(|error| Error::io("create", path, error))?;
    Ok(Some(Output { path: path.to_path_buf(), writer: writer(file) }))
}

impl<W> Output<W> {
    /// Writes to the file.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) -> Result<()> {
        write(&mut self.writer).map_err(|error| Error::io("write", &self.path, error))
    }
}

impl Output<File> {
    /// Writes the whole file.
    pub(super) fn fill(mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        self.write(|file| write(file).and_then(|()| file.flush()))
    }
}
