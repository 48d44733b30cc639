//! Reads a whole database and reports damage. Tables and logs pass the same checks as at open.

use super::open::{TOOL_MEMORY_BYTES, lock_existing, table_context};
use crate::db::inventory::{lost_logs, open_table, read_logs};
use crate::format::FileKind;
use crate::version::{self, list_files};
use kvant_base::{Error, Result};
use kvant_env::Env;
use std::path::Path;

/// Result of [`verify`].
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Tables of the current version.
    pub table_count: u64,
    /// Their entries, tombstones and older versions included.
    pub entry_count: u64,
    /// Their bytes.
    pub table_bytes: u64,
    /// Valid records of the logs.
    pub wal_record_count: u64,
    /// Invalid bytes at the end of the logs that were never known to be synced: the remains of a
    /// crash.
    pub wal_torn_bytes: u64,
    /// Unreferenced files, which the next open removes.
    pub orphan_count: u64,
    /// The damage, each with file and offset. Empty: the database is whole.
    pub problems: Vec<Error>,
}

/// Reads every block, record and edit of the database in `dir` and checks that they are consistent.
/// `tell` receives one line per file.
///
/// # Errors
/// `Locked` when the directory is in use; `Io`. Damage is not an error but part of the report.
pub fn verify(env: &Env, dir: &Path, tell: &mut dyn FnMut(&str)) -> Result<VerifyReport> {
    let _lock = lock_existing(env, dir)?;
    verify_locked(env, dir, tell)
}

/// As [`verify`], for a caller that has the lock.
pub(super) fn verify_locked(
    env: &Env,
    dir: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let mut problems = Vec::new();
    let mut damaged = |tell: &mut dyn FnMut(&str), error: Error| {
        tell(&error.to_string());
        problems.push(error);
    };
    let state = match version::recover(&*env.fs, dir) {
        Ok(Some(manifest)) => {
            let torn = match manifest.discarded_bytes {
                0 => String::new(),
                bytes => format!(", {bytes} bytes of an edit torn off by a crash"),
            };
            tell(&format!("manifest {}: whole{torn}", manifest.num.0));
            manifest.state
        }
        Ok(None) => {
            let missing = Error::corruption(dir, 0, "there is no manifest");
            return Ok(VerifyReport { problems: vec![missing], ..report });
        }
        Err(error) => {
            damaged(tell, error);
            return Ok(VerifyReport { problems, ..report });
        }
    };
    let context = table_context(env, TOOL_MEMORY_BYTES / 2);
    for meta in state.levels().iter().flatten() {
        report.table_count += 1;
        match open_table(env, dir, meta, &context).and_then(|table| table.verify()) {
            Ok(table) => {
                report.entry_count += table.entry_count;
                report.table_bytes += table.file_bytes;
                tell(&format!("table {}: whole, {} entries", meta.num.0, table.entry_count));
            }
            Err(error) => damaged(tell, error),
        }
    }
    let files = list_files(&*env.fs, dir)?;
    let lost = lost_logs(dir, &files, &state);
    match read_logs(env, dir, &files, &state, &mut |_, record| record.replay(|_, _| Ok(()))) {
        Ok(wals) => {
            for wal in wals {
                report.wal_record_count += wal.record_count;
                report.wal_torn_bytes += wal.end.discarded_bytes;
                tell(&format!("log {}: {} records", wal.file_num.0, wal.record_count));
            }
        }
        Err(_) if !lost.is_empty() => lost.into_iter().for_each(|error| damaged(tell, error)),
        Err(error) => damaged(tell, error),
    }
    let is_live = |num| state.levels().iter().flatten().any(|meta| meta.num == num);
    let orphans = files.iter().filter(|(kind, num, _)| *kind == FileKind::Table && !is_live(*num));
    report.orphan_count = orphans.count() as u64;
    Ok(VerifyReport { problems, ..report })
}
