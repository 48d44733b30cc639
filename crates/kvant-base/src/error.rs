//! One error type for the engine and what stands on it.
//!
//! The kind says what the caller must do; the message, file and offset say where. Errors are cheap
//! to clone, because one failed group commit is reported to every request that waited for it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What the caller must do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong (a key over its limit, an unusable option): change it.
    Invalid,
    /// Stored bytes fail their checksum or contradict each other: other keys stay readable; see
    /// `kvant db repair`.
    Corruption,
    /// The operating system refused an operation: look at the source and the file.
    Io,
    /// No space on the device: nothing was written; reads and deletes go on; retry when space has
    /// returned.
    NoSpace,
    /// The disk failed while this was written or synced: whether it will survive a restart is
    /// unknown.
    OutcomeUnknown,
    /// Because of an earlier failure of the disk no write is accepted until the database is opened
    /// anew.
    Fenced,
    /// The write path is over its limits now: nothing was written; wait for it to become writable,
    /// or retry later.
    Stalled,
    /// Another process owns the data directory.
    Locked,
    /// The files were written by a newer version of Kvant: use that version.
    Unsupported,
    /// The database has been closed.
    Closed,
}

/// An error with its kind, a sentence, and, where there is one, the file and byte offset it
/// concerns.
#[derive(Clone)]
pub struct Error(Box<Details>);

#[derive(Clone)]
struct Details {
    kind: ErrorKind,
    message: String,
    file: Option<PathBuf>,
    offset_bytes: Option<u64>,
    source: Option<Arc<io::Error>>,
}

impl Error {
    /// An error of `kind` explained by `message` (no final period; names what was expected and what
    /// was found).
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Details {
            kind,
            message: message.into(),
            file: None,
            offset_bytes: None,
            source: None,
        }))
    }

    /// [`ErrorKind::Corruption`] at a byte offset of a file.
    pub fn corruption(file: &Path, offset_bytes: u64, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corruption, message).with_file(file).with_offset(offset_bytes)
    }

    /// [`ErrorKind::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// An operating-system error met while doing `action` ("append to", "rename") on `file`.
    /// `ENOSPC` and `EDQUOT` become [`ErrorKind::NoSpace`], everything else [`ErrorKind::Io`].
    pub fn io(action: &str, file: &Path, source: io::Error) -> Error {
        let full =
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let kind = if full { ErrorKind::NoSpace } else { ErrorKind::Io };
        let mut error = Error::new(kind, format!("cannot {action}")).with_file(file);
        error.0.source = Some(Arc::new(source));
        error
    }

    /// Names the file that the error concerns, unless one is named already.
    #[must_use]
    pub fn with_file(mut self, file: &Path) -> Error {
        self.0.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// Names the byte offset in the file, unless one is named already.
    #[must_use]
    pub fn with_offset(mut self, offset_bytes: u64) -> Error {
        self.0.offset_bytes.get_or_insert(offset_bytes);
        self
    }

    /// The same details under another kind: the first cause of a fence, for instance.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence alone, without file, offset and source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file that the error concerns.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The byte offset in [`Error::file`].
    pub fn offset_bytes(&self) -> Option<u64> {
        self.0.offset_bytes
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(file) = &self.0.file {
            write!(f, " in {}", file.display())?;
        }
        if let Some(offset) = self.0.offset_bytes {
            write!(f, " at byte {offset}")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}
