//! The fence: after a failure that leaves unknown what the disk holds, such as a failed fsync, no
//! write is accepted until the database is opened again.

use kvant_base::{Error, ErrorKind, Result};
use std::sync::OnceLock;

/// Set once, by the first cause.
#[derive(Default)]
pub(crate) struct Fence {
    cause: OnceLock<Error>,
}

impl Fence {
    /// Fences, unless that has happened. Returns the first cause.
    pub(crate) fn set(&self, cause: Error) -> Error {
        self.cause.get_or_init(|| cause).clone()
    }

    pub(crate) fn cause(&self) -> Option<&Error> {
        self.cause.get()
    }

    /// `Fenced`, with the first cause in its text, once fenced.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.cause.get() {
            None => Ok(()),
            Some(cause) => Err(Error::new(
                ErrorKind::Fenced,
                format!("writes are fenced until a restart: {cause}"),
            )),
        }
    }
}
