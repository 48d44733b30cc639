//! Reads everything and says what is damaged. Tables and logs pass the same checks as at open.

use super::{TOOL_MEMORY_BYTES, lock_existing, table_context};
use crate::db::inventory::{list, lost_logs, open_table, read_logs};
use crate::format::FileKind;
use crate::version;
use kvant_base::{Error, Result};
use kvant_env::Env;
use std::path::Path;

/// What [`verify`] read, and what it found.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Tables of the current version.
    pub table_count: u64,
    /// Their entries, tombstones and older versions included.
    pub entry_count: u64,
    /// Their bytes.
    pub table_bytes: u64,
    /// Good records of the log.
    pub wal_record_count: u64,
    /// Bytes at the end of the log that were never known to be synced and do not decode: what a
    /// crash leaves.
    pub wal_torn_bytes: u64,
    /// Files that nothing refers to; the next open removes them.
    pub orphan_count: u64,
    /// What is damaged, each with its file and offset. Empty: the database is whole.
    pub problems: Vec<Error>,
}

/// Reads every block, record and edit of the database in `dir` and checks them against each other.
/// `tell` gets a line per file.
///
/// # Errors
/// `Locked` when somebody serves the directory; `Io`. Damage is not an error but in the report.
pub fn verify(env: &Env, dir: &Path, tell: &mut dyn FnMut(&str)) -> Result<VerifyReport> {
    let _owner = lock_existing(env, dir)?;
    let mut report = VerifyReport::default();
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
            report.problems.push(Error::corruption(dir, 0, "there is no manifest"));
            return Ok(report);
        }
        Err(error) => {
            tell(&error.to_string());
            report.problems.push(error);
            return Ok(report);
        }
    };
    let context = table_context(TOOL_MEMORY_BYTES / 2);
    for meta in state.levels().iter().flatten() {
        report.table_count += 1;
        match open_table(env, dir, meta, &context).and_then(|table| table.verify()) {
            Ok(table) => {
                report.entry_count += table.entry_count;
                report.table_bytes += table.file_bytes;
                tell(&format!("table {}: whole, {} entries", meta.num.0, table.entry_count));
            }
            Err(error) => {
                tell(&error.to_string());
                report.problems.push(error);
            }
        }
    }
    let files = list(env, dir)?;
    let lost = lost_logs(dir, &files, &state);
    match read_logs(env, dir, &files, &state, &mut |_, record| record.replay(|_, _| Ok(()))) {
        Err(_) if !lost.is_empty() => {
            lost.iter().for_each(|error| tell(&error.to_string()));
            report.problems.extend(lost);
        }
        Ok(wals) => {
            for wal in wals {
                report.wal_record_count += wal.record_count;
                report.wal_torn_bytes += wal.end.discarded_bytes;
                tell(&format!("log {}: {} records", wal.file_num.0, wal.record_count));
            }
        }
        Err(error) => {
            tell(&error.to_string());
            report.problems.push(error);
        }
    }
    let live = |num| state.levels().iter().flatten().any(|meta| meta.num == num);
    report.orphan_count =
        files.iter().filter(|(kind, num, _)| *kind == FileKind::Table && !live(*num)).count()
            as u64;
    Ok(report)
}
