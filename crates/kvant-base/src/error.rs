//! The error type of the engine and of the crates that use it.
//!
//! The kind says what the caller must do; message, file and offset say where the error occurred.
//! Errors can be cloned, because a failed group commit is reported to every request in the group.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Whether the device is full, or the user's quota on it: `ENOSPC` or `EDQUOT`.
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The category of an error, by what the caller must do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid (a key over its limit, an unusable option). Change it.
    Invalid,
    /// Stored bytes fail their checksum or are inconsistent. Other keys stay readable; see
    /// `kvant db repair`.
    Corruption,
    /// An operating-system call failed. See the source and the file.
    Io,
    /// The device is full and nothing was written. Reads and deletes still work; retry when there
    /// is space.
    NoSpace,
    /// A write or sync failed part way. The data may or may not survive a restart.
    OutcomeUnknown,
    /// An earlier disk failure blocks all writes until the database is reopened.
    Fenced,
    /// The write path is over its limits and nothing was written. Wait until it is writable, or
    /// retry later.
    Stalled,
    /// Another process owns the data directory.
    Locked,
    /// The files were written by a newer version of Kvant. Use that version.
    Unsupported,
    /// The database has been closed.
    Closed,
    /// Fewer nodes of the cluster than required have answered. A write may be there nevertheless,
    /// or appear later, if any received it.
    TooFewReplicas {
        /// Answers that were needed.
        required: u32,
        /// Answers, or nodes that could answer.
        received: u32,
    },
    /// The cluster has not answered in time. A write may be there nevertheless, or appear later.
    NoAnswer,
    /// The cluster cannot be reached and nothing was done. Retry later.
    Away,
    /// The nodes that would do it have too much to do, and nothing was done. Retry later, or send
    /// less.
    Overloaded,
}

/// An error with its kind, a message and, if known, the file and byte offset.
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
    /// An error of `kind`. `message` has no final period and states both the expected and the
    /// actual value.
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

    /// An operating-system error during `action` ("append to", "rename") on `file`. `ENOSPC` and
    /// `EDQUOT` become [`ErrorKind::NoSpace`], all others [`ErrorKind::Io`].
    pub fn io(action: &str, file: &Path, source: io::Error) -> Error {
        let kind = if is_no_space(&source) { ErrorKind::NoSpace } else { ErrorKind::Io };
        let mut error = Error::new(kind, format!("cannot {action}")).with_file(file);
        error.0.source = Some(Arc::new(source));
        error
    }

    /// Sets the file unless one is set.
    #[must_use]
    pub fn with_file(mut self, file: &Path) -> Error {
        self.0.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// Sets the byte offset in the file unless one is set.
    #[must_use]
    pub fn with_offset(mut self, offset_bytes: u64) -> Error {
        self.0.offset_bytes.get_or_insert(offset_bytes);
        self
    }

    /// Replaces the kind and keeps the details, for example the first cause of a fence.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without file, offset and source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file in which the error occurred.
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
