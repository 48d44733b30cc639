//! Restores a database from a checkpoint.

use super::open::lock_existing;
use super::verify::verify_locked;
use crate::db::directory;
use kvant_base::{Error, Result};
use kvant_env::fs::create_dir_durably;
use kvant_env::{Env, Fs};
use std::path::Path;

const COPY_BYTES: usize = 1 << 20;

/// Result of [`restore`].
#[derive(Debug)]
pub struct RestoreReport {
    /// Files copied.
    pub file_count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Verifies the checkpoint (or any database not in use) in `from` and copies it to `to`, which must
/// not exist. The copy shares no files with the original and may be on another file system.
///
/// # Errors
/// `Corruption`: the first damage of the checkpoint; `Invalid` when `to` exists; `Locked` when one
/// of the two is in use; `Io`, `NoSpace`.
pub fn restore(env: &Env, from: &Path, to: &Path) -> Result<RestoreReport> {
    let fs = &*env.fs;
    if fs.exists(to).map_err(|e| Error::io("look at", to, e))? {
        return Err(Error::invalid("the directory to restore to exists").with_file(to));
    }
    // Until the end: a server that starts meanwhile would change files that are being copied.
    let _lock = lock_existing(env, from)?;
    if let Some(problem) = verify_locked(env, from, &mut |_| ())?.problems.into_iter().next() {
        return Err(problem);
    }
    create_dir_durably(fs, to)?;
    // Until the end, too: a server would make a database of its own beside the copied files.
    let _target_lock = directory::lock(env, to)?;
    // Of a server that was there first; or of a directory that this name led to only now.
    let found = fs.list(to).map_err(|e| Error::io("list", to, e))?;
    if let Some(file) = found.iter().find(|entry| entry.name != "LOCK") {
        let what = format!("the directory to restore to has a file {}", file.name);
        return Err(Error::invalid(what).with_file(to));
    }
    let mut report = RestoreReport { file_count: 0, bytes: 0 };
    let mut entries = fs.list(from).map_err(|e| Error::io("list", from, e))?;
    entries.retain(|entry| entry.name != "LOCK" && entry.name != "RESERVE");
    // The manifest is copied last: an interrupted copy is not a database.
    entries.sort_by_key(|entry| entry.name.starts_with("MANIFEST"));
    for entry in &entries {
        copy(fs, &from.join(&entry.name), &to.join(&entry.name), entry.len_bytes)?;
        report.file_count += 1;
        report.bytes += entry.len_bytes;
    }
    fs.sync_dir(to).map_err(|e| Error::io("fsync", to, e))?;
    Ok(report)
}

fn copy(fs: &dyn Fs, from: &Path, to: &Path, len_bytes: u64) -> Result<()> {
    let source = fs.open(from).map_err(|e| Error::io("open", from, e))?;
    let target = fs.create(to).map_err(|e| Error::io("create", to, e))?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < len_bytes {
        let count = (len_bytes - offset).min(COPY_BYTES as u64);
        let part = &mut buffer[..count as usize];
        source.read_exact_at(part, offset).map_err(|e| Error::io("read", from, e))?;
        target.write_all_at(part, offset).map_err(|e| Error::io("write", to, e))?;
        offset += count;
    }
    target.sync_data().map_err(|e| Error::io("fsync", to, e))
}
