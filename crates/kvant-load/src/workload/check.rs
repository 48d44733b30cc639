//! Refuses a configuration with problems.

use kvant_base::{Error, Result};

pub(super) fn check(problems: Vec<String>) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(problems.join("; ")))
}
