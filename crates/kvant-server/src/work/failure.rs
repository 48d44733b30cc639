//! Why storage work has no result.

use crate::admission::Refusal;
use kvant_base::Error;

#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Storage(Error),
    /// The request was refused; nothing of it was done.
    Refused(Refusal),
    NoMemory,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Storage(error)
    }
}
