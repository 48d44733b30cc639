//! LevelDB's error texts as errors with a kind.
//!
//! The C interface has no codes: a text begins with the name of its status, and an error of the
//! operating system ends with the system's own text, in the C locale.

use kvant_base::{Error, ErrorKind};
use std::path::Path;

/// The status names of LevelDB.
const IO: &str = "IO error: ";
const CORRUPTION: &str = "Corruption: ";
const INVALID: &str = "Invalid argument: ";

/// What LevelDB says when its lock is taken: by this process, by another one.
const LOCKED: [&str; 2] = ["already held by process", "Resource temporarily unavailable"];
const FULL: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// The error that `text` describes, about the database in `dir`.
pub(crate) fn error(dir: &Path, text: &str) -> Error {
    let ends_with_any = |ends: &[&str]| ends.iter().any(|end| text.ends_with(end));
    // The last: a read beyond the end of a table.
    let kind = if text.starts_with(CORRUPTION)
        || (text.starts_with(IO) && text.ends_with(": Invalid argument"))
    {
        ErrorKind::Corruption
    } else if text.starts_with(INVALID) {
        ErrorKind::Invalid
    } else if text.starts_with(IO)
        && text[IO.len()..].starts_with("lock ")
        && ends_with_any(&LOCKED)
    {
        ErrorKind::Locked
    } else if text.starts_with(IO) && ends_with_any(&FULL) {
        ErrorKind::NoSpace
    } else {
        ErrorKind::Io
    };
    Error::new(kind, format!("LevelDB: {text}")).with_file(dir)
}

#[cfg(test)]
mod tests;
