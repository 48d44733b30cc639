//! The files that the manifest relies on: its tables and its logs.
//!
//! Open, verify, restore and repair all check tables and logs here, so that a database that passes
//! verify also opens.

use crate::format::{FileKind, FileNum, SeqNum, file_path};
use crate::table::{Table, TableContext};
use crate::version::{FileMeta, Listed, ManifestState};
use crate::wal::{self, RecoveredWal, WalRecord};
use kvant_base::{Error, Result};
use kvant_env::Env;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens the table that the manifest describes as `meta`.
///
/// # Errors
/// `Corruption` when it is missing or damaged, or when the file holds another table;
/// `Unsupported`; `Io`.
pub(crate) fn open_table(
    env: &Env,
    dir: &Path,
    meta: &FileMeta,
    context: &Arc<TableContext>,
) -> Result<Arc<Table>> {
    let path = file_path(dir, FileKind::Table, meta.num);
    let file = context.open_file(&*env.fs, &path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => {
            Error::corruption(&path, 0, "a table that the manifest names is missing")
        }
        _ => Error::io("open", &path, source),
    })?;
    let table = Table::open(file, &path, meta.num, meta.file_bytes, Arc::clone(context))?;
    match meta.disagreement(table.properties(), table.file_bytes()) {
        Some(what) => Err(Error::corruption(&path, 0, what)),
        None => Ok(table),
    }
}

/// The logs from `oldest` on, ascending, without those at the end that are empty: they were
/// prepared and never used.
pub(crate) fn needed_wals(files: &[Listed], oldest: FileNum) -> Vec<FileNum> {
    let logs = files.iter().filter(|(kind, num, _)| *kind == FileKind::Wal && *num >= oldest);
    let mut logs: Vec<_> = logs.map(|(_, num, entry)| (*num, entry.len_bytes)).collect();
    logs.sort_unstable();
    let used = logs.iter().rposition(|(_, len_bytes)| *len_bytes > 0).map_or(0, |last| last + 1);
    logs[..used].iter().map(|(num, _)| *num).collect()
}

/// The logs that the manifest knows and that are missing or too short.
pub(crate) fn lost_logs(dir: &Path, files: &[Listed], state: &ManifestState) -> Vec<Error> {
    let oldest =
        Some((state.oldest_wal, 0)).filter(|(num, _)| num.0 > 0 && !state.logs.contains_key(num));
    let known = state.logs.iter().map(|(num, bytes)| (*num, *bytes));
    let lost = oldest.into_iter().chain(known).filter_map(|(num, known_bytes)| {
        let path = file_path(dir, FileKind::Wal, num);
        let found = files.iter().find(|(kind, found, _)| *kind == FileKind::Wal && *found == num);
        match found.map(|(_, _, entry)| entry.len_bytes) {
            None => {
                let what = match known_bytes {
                    0 => "a log that the manifest names is missing".to_string(),
                    _ => format!(
                        "a log is missing of which {known_bytes} bytes are known to be synced"
                    ),
                };
                Some(Error::corruption(&path, 0, what))
            }
            Some(bytes) if bytes < known_bytes => {
                let what = format!(
                    "the log ends, though it is known to be synced up to byte {known_bytes}"
                );
                Some(Error::corruption(&path, bytes, what))
            }
            Some(_) => None,
        }
    });
    lost.collect()
}

/// Reads the logs that are needed as one: see [`wal::recover`].
///
/// # Errors
/// `Corruption` when something that is known to be synced is bad or missing; `Unsupported`; `Io`;
/// what `visit` returns.
pub(crate) fn read_logs(
    env: &Env,
    dir: &Path,
    files: &[Listed],
    state: &ManifestState,
    visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
) -> Result<Vec<RecoveredWal>> {
    if let Some(lost) = lost_logs(dir, files, state).into_iter().next() {
        return Err(lost);
    }
    let nums = needed_wals(files, state.oldest_wal);
    wal::recover(&*env.fs, dir, &nums, &state.logs, Some(first_seq(state)), visit)
}

/// The sequence number of the first record of the oldest needed log.
pub(crate) fn first_seq(state: &ManifestState) -> SeqNum {
    SeqNum(state.last_seq.0 + 1)
}
