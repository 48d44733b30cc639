//! The output: format and destination.

use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_profiler::recording::{self, Kind, Recording};
use kvant_profiler::render;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file to write; `-` is standard output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Html,
    Kprof,
    Pprof,
    Collapsed(Kind),
}

impl Output {
    /// An output whose format follows from the file name; collapsed stacks are those of CPU time.
    pub(crate) fn of_name(path: PathBuf) -> Option<Output> {
        let format = match Output::word_of_name(&path)? {
            "kprof" => Format::Kprof,
            "pprof" => Format::Pprof,
            "collapsed" => Format::Collapsed(Kind::Cpu),
            _ => Format::Html,
        };
        Some(Output { path, format })
    }

    /// The format that a file name's ending implies, as a word of `--format`.
    pub(crate) fn word_of_name(path: &Path) -> Option<&'static str> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let words = [
            (".html", "html"),
            (".htm", "html"),
            (".kprof", "kprof"),
            (".pb.gz", "pprof"),
            (".pprof", "pprof"),
            (".collapsed", "collapsed"),
            (".folded", "collapsed"),
        ];
        let found = words.into_iter().find(|(ending, _)| name.ends_with(ending));
        found.map(|(_, word)| word)
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Writes a recording.
    ///
    /// # Errors
    /// `Io` with the file.
    pub(crate) fn write(&self, recording: &Recording) -> Result<()> {
        let bytes = match self.format {
            Format::Html => render::html(recording).into_bytes(),
            Format::Kprof => recording::encode(recording),
            Format::Pprof => render::pprof(recording),
            Format::Collapsed(kind) => render::collapsed(recording, kind).into_bytes(),
        };
        self.write_bytes(&bytes)
    }

    /// Writes a page that compares two recordings.
    ///
    /// # Errors
    /// `Io` with the file.
    pub(crate) fn write_difference(&self, base: &Recording, other: &Recording) -> Result<()> {
        self.write_bytes(render::html_difference(base, other).as_bytes())
    }

    fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        if !self.is_stdout() {
            return host::write_file(&self.path, bytes)
                .map_err(|error| Error::io("write", &self.path, error));
        }
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            // A reader that stops reading is no failure.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::io("write to", Path::new("standard output"), error))
            }
            _ => Ok(()),
        }
    }
}
