//! Opens a data directory, or a table of one, for a tool.

use crate::context::resources::Resources;
use crate::db::Db;
use crate::db::directory;
use crate::format::{FileKind, FileNum, file_path};
use crate::options::Options;
use crate::table::{Table, TableContext};
use kvant_base::{Error, MemoryBudget, Result};
use kvant_env::{Env, FileLock};
use std::path::Path;
use std::sync::Arc;

pub(super) const TOOL_MEMORY_BYTES: u64 = 256 << 20;

pub(super) fn open_db(env: &Env, dir: &Path) -> Result<Db> {
    let options = Options::for_memory(TOOL_MEMORY_BYTES);
    let resources = Resources::new(&options);
    Db::open(env.clone(), dir, options, resources)
}

pub(super) fn lock_existing(env: &Env, dir: &Path) -> Result<Box<dyn FileLock>> {
    if !env.fs.exists(dir).map_err(|e| Error::io("look at", dir, e))? {
        return Err(Error::invalid("there is no such directory").with_file(dir));
    }
    directory::refuse_leveldb(env, dir)?;
    directory::lock(env, dir)
}

/// `metadata_share_bytes`: most bytes of pinned indexes and filters; with 0 they are not read at
/// open.
pub(super) fn table_context(env: &Env, metadata_share_bytes: u64) -> Arc<TableContext> {
    let memory = MemoryBudget::new(TOOL_MEMORY_BYTES);
    TableContext::new(&env.clock, &memory, metadata_share_bytes, false)
}

/// Opens the table in file `num` without comparing it with the manifest.
pub(super) fn open_table_file(
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
