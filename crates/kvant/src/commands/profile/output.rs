//! The output: format and destination.

use crate::exit::print;
use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_profiler::recording::{Kind, Recording};
use kvant_profiler::render::{self, Format};
use std::path::{Path, PathBuf};

/// A file to write; `-` is standard output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl Output {
    /// An output whose format follows from the file name; collapsed stacks are those of CPU time.
    pub(crate) fn of_name(path: PathBuf) -> Option<Output> {
        Some(Output { format: Output::format_of_name(&path)?, path })
    }

    /// The format that a file name's ending implies.
    pub(crate) fn format_of_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let formats = [
            (".html", Format::Html),
            (".htm", Format::Html),
            (".kprof", Format::Kprof),
            (".pb.gz", Format::Pprof),
            (".pprof", Format::Pprof),
            (".collapsed", Format::Collapsed(Kind::Cpu)),
            (".folded", Format::Collapsed(Kind::Cpu)),
        ];
        let found = formats.into_iter().find(|(ending, _)| name.ends_with(ending));
        found.map(|(_, format)| format)
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Writes a recording.
    pub(crate) fn write(&self, recording: &Recording) -> Result<()> {
        self.write_bytes(&self.format.encode(recording))
    }

    /// Writes a page that compares two recordings.
    pub(crate) fn write_difference(&self, base: &Recording, other: &Recording) -> Result<()> {
        self.write_bytes(render::html_difference(base, other, None).as_bytes())
    }

    fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        if !self.is_stdout() {
            return host::write_file(&self.path, bytes)
                .map_err(|error| Error::io("write", &self.path, error));
        }
        print(bytes)
    }
}
