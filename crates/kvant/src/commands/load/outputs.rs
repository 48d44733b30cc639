//! Where results go: standard output, and the files that were asked for.
//!
//! Files are created before the load begins: a name that cannot be written is told before an hour
//! of load, not after it.

use super::settings::Results;
use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_load::report::hlog::HlogWriter;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is being written.
pub(super) struct Output {
    path: PathBuf,
    file: Box<dyn Write + Send>,
}

/// The files of a run.
#[derive(Default)]
pub(super) struct Outputs {
    pub(super) json: Option<Output>,
    pub(super) hgrm: Option<Output>,
    pub(super) hlog: Option<HlogOutput>,
}

/// The log of intervals, which grows while the load goes on.
pub(super) struct HlogOutput {
    path: PathBuf,
    writer: HlogWriter<Box<dyn Write + Send>>,
}

impl Outputs {
    /// Creates the files.
    ///
    /// # Errors
    /// `Io` with the file that cannot be created.
    pub(super) fn create(results: &Results) -> Result<Outputs> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        let hlog = create(&results.hlog)?
            .map(|output| HlogOutput { path: output.path, writer: HlogWriter::new(output.file) });
        Ok(Outputs { json: create(&results.json)?, hgrm: create(&results.hgrm)?, hlog })
    }
}

impl Output {
    fn create(path: &Path) -> Result<Output> {
        let file = host::create_file(path).map_err(|error| Error::io("create", path, error))?;
        Ok(Output { path: path.to_path_buf(), file })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// `Io` with its name.
    pub(super) fn fill(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let written = write(&mut self.file).and_then(|()| self.file.flush());
        written.map_err(|error| Error::io("write", &self.path, error))
    }
}

impl HlogOutput {
    /// Appends with the log's writer.
    ///
    /// # Errors
    /// `Io` with the file's name.
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut HlogWriter<Box<dyn Write + Send>>) -> io::Result<()>,
    ) -> Result<()> {
        write(&mut self.writer).map_err(|error| Error::io("write", &self.path, error))
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// `Io` with the file's name.
    pub(super) fn finish(self) -> Result<()> {
        let path = self.path;
        self.writer.finish().map(|_| ()).map_err(|error| Error::io("write", &path, error))
    }
}

/// Prints on standard output. A reader that has seen enough (`kvant load ... | head`) is no
/// failure.
///
/// # Errors
/// `Io` when it cannot be written.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io("write to", Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}
