//! The report of a run.

use super::summary;
use crate::exit::print;
use kvant_base::Result;
use std::path::Path;

/// Writes what can be said of the run in `dir`: a table on standard output.
///
/// # Errors
/// `Io` if a file cannot be read or written; `Invalid` if it is no run.
pub(super) fn write_report(dir: &Path) -> Result<()> {
    print(summary::text(dir)?)
}
