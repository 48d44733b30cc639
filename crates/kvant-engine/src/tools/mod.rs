//! Offline tools on a data directory: verify, repair, dump, restore.
//!
//! Each tool takes the lock of the directory, so none reads files that a server is changing.

mod dump;
mod open;
mod repair;
mod restore;
mod verify;

pub use dump::{DumpTarget, dump};
pub use repair::{RepairReport, repair};
pub use restore::{RestoreReport, restore};
pub use verify::{VerifyReport, verify};

use crate::stats::Stats;
use kvant_base::Result;
use kvant_env::Env;
use open::open_db;
use std::path::Path;

/// The statistics of a database that is not in use: opens, recovers and closes it.
pub fn stats(env: &Env, dir: &Path) -> Result<Stats> {
    let db = open_db(env, dir)?;
    let stats = db.stats();
    db.close()?;
    Ok(stats)
}
