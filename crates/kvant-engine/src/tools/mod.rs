//! Offline tools on a data directory: verify, repair, dump, restore.
//!
//! Each takes the directory's lock, so that none of them looks at files that a server is changing.

mod dump;
mod repair;
mod restore;
mod verify;

pub use dump::{DumpTarget, dump};
pub use repair::{RepairReport, repair};
pub use restore::{RestoreReport, restore};
pub use verify::{VerifyReport, verify};

use crate::db::Db;
use crate::db::recovery;
use crate::format::{FileKind, FileNum, file_path};
use crate::options::Options;
use crate::stats::Stats;
use crate::table::{BlockCache, Table, TableContext, TableStats};
use kvant_base::{Error, MemoryBudget, Result};
use kvant_env::{Env, FileLock};
use std::path::Path;
use std::sync::Arc;

/// Memory of a tool's own block cache and table metadata, in bytes.
const TOOL_MEMORY_BYTES: u64 = 256 << 20;

/// The statistics of a database that nobody serves: it is opened, recovered and closed.
///
/// # Errors
/// As [`Db::open`].
pub fn stats(env: &Env, dir: &Path) -> Result<Stats> {
    let options = Options::for_memory(TOOL_MEMORY_BYTES);
    let resources = crate::db::Resources::new(&options);
    let db = Db::open(env.clone(), dir, options, resources)?;
    let stats = db.stats();
    db.close()?;
    Ok(stats)
}

fn lock_existing(env: &Env, dir: &Path) -> Result<Box<dyn FileLock>> {
    if !env.fs.exists(dir).map_err(|e| Error::io("look at", dir, e))? {
        return Err(Error::invalid("there is no such directory").with_file(dir));
    }
    recovery::lock(env, dir)
}

/// `metadata_share_bytes`: what indexes and filters held by tables may take; with 0 they are not
/// read at open.
fn table_context(metadata_share_bytes: u64) -> Arc<TableContext> {
    let memory = MemoryBudget::new(TOOL_MEMORY_BYTES);
    Arc::new(TableContext {
        cache: BlockCache::new(Arc::clone(&memory)),
        memory,
        metadata_share_bytes,
        stats: Arc::new(TableStats::default()),
    })
}

/// Opens the table in a file, whatever the manifest says.
fn open_table_file(
    env: &Env,
    dir: &Path,
    num: FileNum,
    context: &Arc<TableContext>,
) -> Result<Arc<Table>> {
    let path = file_path(dir, FileKind::Table, num);
    let file = env.fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
    let file_bytes = file.len_bytes().map_err(|e| Error::io("read the length of", &path, e))?;
    Table::open(file, &path, num, file_bytes, Arc::clone(context))
}
