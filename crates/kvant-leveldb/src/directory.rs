//! The files of a directory, before LevelDB sees them.
//!
//! Where LevelDB finds no file `CURRENT` it takes the directory for a new one, and removes the
//! manifests and tables in it. So a directory with such files and without `CURRENT` is refused: it
//! is another engine's, or a database of LevelDB that lost the file. LevelDB's repair would take
//! apart that of another engine, too.

use kvant_base::{Error, ErrorKind, Result};
use kvant_env::fs::{create_dir_durably, parent_of};
use kvant_env::{Env, Fs};
use std::io;
use std::path::{Path, PathBuf};

/// Names the current manifest; every database of LevelDB has it, and no other engine of Kvant.
const CURRENT: &str = "CURRENT";
/// The only manifest that the creation of a database writes. A crash may leave it without
/// `CURRENT`.
const FIRST_MANIFEST: &str = "MANIFEST-000001";
/// LevelDB locks it while it has the directory open.
pub(crate) const LOCK: &str = "LOCK";
/// What each manifest of the engine `lsm` begins with (`docs/formats/manifest.md`). Its checkpoints
/// have no logs to know it by.
const LSM_MANIFEST: [u8; 8] = *b"KVANTMAN";

/// Whether `dir` holds a database of LevelDB.
///
/// # Errors
/// The directory cannot be read.
pub fn is_database(fs: &dyn Fs, dir: &Path) -> Result<bool> {
    let path = dir.join(CURRENT);
    fs.exists(&path).map_err(|error| Error::io("look at", &path, error))
}

/// Whether `dir` holds a database; creates the directory where there is none. With `is_damaged_ok`,
/// a database without `CURRENT` is one too.
pub(crate) fn prepare(env: &Env, dir: &Path, is_damaged_ok: bool) -> Result<bool> {
    let fs = &*env.fs;
    if !fs.exists(dir).map_err(|error| Error::io("look at", dir, error))? {
        create_dir_durably(fs, dir)?;
        return Ok(false);
    }
    let entries = fs.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let names = || entries.iter().map(|entry| entry.name.as_str());
    let of_lsm = || {
        let what = "the directory belongs to the engine `lsm`: use --engine lsm, or another --data";
        Error::invalid(what).with_file(dir)
    };
    if names().any(|name| name.ends_with(".wal")) {
        return Err(of_lsm());
    }
    if names().any(|name| name == CURRENT) {
        return Ok(true);
    }
    for name in names().filter(|name| name.starts_with("MANIFEST-")) {
        if is_of_lsm(fs, &dir.join(name))? {
            return Err(of_lsm());
        }
    }
    let is_left = |name: &str| {
        let is_manifest = name.starts_with("MANIFEST-") && name != FIRST_MANIFEST;
        is_manifest || [".ldb", ".sst", ".log"].iter().any(|end| name.ends_with(end))
    };
    match names().find(|name| is_left(name)) {
        // A start that a crash ended may have left its name in doubt.
        None => create_dir_durably(fs, dir).map(|()| false),
        Some(_) if is_damaged_ok => Ok(true),
        Some(name) => {
            let what = format!("there is a file {name}, but LevelDB's file {CURRENT} is missing");
            Err(Error::new(ErrorKind::Corruption, what).with_file(dir))
        }
    }
}

/// Whether a manifest is one of the engine `lsm`.
fn is_of_lsm(fs: &dyn Fs, manifest: &Path) -> Result<bool> {
    let mut start = [0; LSM_MANIFEST.len()];
    match fs.open(manifest).and_then(|file| file.read_exact_at(&mut start, 0)) {
        Ok(()) => Ok(start == LSM_MANIFEST),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Error::io("read", manifest, error)),
    }
}

/// LevelDB's write-ahead logs, oldest first.
fn logs(fs: &dyn Fs, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs.list(dir)?;
    let logs = entries.iter().filter(|entry| entry.name.ends_with(".log"));
    Ok(logs.map(|entry| dir.join(&entry.name)).collect())
}

/// Makes the name of `dir` durable.
pub(crate) fn sync_parent(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let parent = parent_of(dir);
    fs.sync_dir(parent).map_err(|error| Error::io("sync", parent, error))
}

/// Syncs LevelDB's logs and the names in the directory. A log that is gone is in a synced table.
pub(crate) fn sync(fs: &dyn Fs, dir: &Path) -> Result<()> {
    for path in logs(fs, dir).map_err(|error| Error::io("list", dir, error))? {
        match fs.open(&path).and_then(|log| log.sync_data()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            synced => synced.map_err(|error| Error::io("fsync", &path, error))?,
        }
    }
    fs.sync_dir(dir).map_err(|error| Error::io("fsync", dir, error))
}

/// Adds the owner to an error about a locked directory.
pub(crate) fn name_owner(dir: &Path, error: Error) -> Error {
    // The lock of this process would end when it closes another descriptor of the file.
    if error.kind() != ErrorKind::Locked || error.message().ends_with("held by process") {
        return error;
    }
    match kvant_env::posix::record_lock_owner(&dir.join(LOCK)) {
        Ok(Some(pid)) => {
            let what = format!("the directory is in use by process {pid}");
            Error::new(ErrorKind::Locked, what).with_file(dir)
        }
        Ok(None) | Err(_) => error,
    }
}

#[cfg(test)]
mod tests;
