//! The data directory: created, locked, and removed again after a refused start.

use crate::format::{FileKind, FileNum, file_path};
use kvant_base::log::{Level, Log};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::fs::create_dir_durably;
use kvant_env::{Env, FileLock};
use std::io;
use std::path::Path;

/// The files that a start creates before it may be refused.
pub(super) struct Created {
    dir: bool,
    lock: bool,
}

impl Created {
    /// Finds out what a start in `dir` will create.
    pub(super) fn new(env: &Env, dir: &Path) -> Result<Created> {
        let is_missing = |path: &Path| {
            let exists = env.fs.exists(path).map_err(|e| Error::io("look at", path, e));
            exists.map(|exists| !exists)
        };
        Ok(Created {
            dir: is_missing(dir)?,
            lock: is_missing(&file_path(dir, FileKind::Lock, FileNum(0)))?,
        })
    }

    /// Removes it after a refusal. `is_owner`: the directory is locked, so no other process uses
    /// it.
    pub(super) fn undo(self, env: &Env, dir: &Path, is_owner: bool, log: &dyn Log) {
        if !is_owner {
            return;
        }
        let lock = file_path(dir, FileKind::Lock, FileNum(0));
        let removed = match (self.lock, self.dir) {
            (_, true) => env.fs.remove_dir_all(dir),
            (true, false) => env.fs.remove_file(&lock),
            (false, false) => Ok(()),
        };
        if let Err(error) = removed {
            let error = Error::io("remove", &lock, error);
            log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
        }
    }
}

/// Refuses a directory of LevelDB, whose names of manifests and tables are like this engine's:
/// opening would write to it, and a repair would move its files away.
pub(crate) fn refuse_leveldb(env: &Env, dir: &Path) -> Result<()> {
    let current = dir.join("CURRENT");
    match env.fs.exists(&current).map_err(|e| Error::io("look at", &current, e))? {
        false => Ok(()),
        true => {
            let what = "the directory belongs to LevelDB: serve it with --engine leveldb, or copy \
                        it with `kvant db copy`";
            Err(Error::invalid(what).with_file(dir))
        }
    }
}

/// Creates the directory where there is none. The name of one that exists is made durable with its
/// first manifest.
pub(super) fn create_dir(env: &Env, dir: &Path) -> Result<()> {
    match env.fs.exists(dir).map_err(|e| Error::io("look at", dir, e))? {
        true => refuse_leveldb(env, dir),
        false => create_dir_durably(&*env.fs, dir),
    }
}

/// Refuses to read past the page cache where the file system cannot. The directory is locked.
pub(super) fn check_direct_reads(env: &Env, dir: &Path) -> Result<()> {
    let lock = file_path(dir, FileKind::Lock, FileNum(0));
    let read = env.fs.open_direct(&lock).and_then(|file| file.read_exact_at(&mut [0], 0));
    let Err(error) = read else { return Ok(()) };
    match error.kind() {
        // On a full disk the lock may be empty.
        io::ErrorKind::UnexpectedEof => Ok(()),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
            let what = "the file system has no direct reads (O_DIRECT): start without \
                        --direct-reads, or on another file system";
            Err(Error::invalid(what).with_file(dir))
        }
        _ => Err(Error::io("read", &lock, error)),
    }
}

pub(crate) fn lock(env: &Env, dir: &Path) -> Result<Box<dyn FileLock>> {
    let path = file_path(dir, FileKind::Lock, FileNum(0));
    env.fs.lock(&path).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Locked, source.to_string()).with_file(dir)
        }
        _ => Error::io("lock", &path, source),
    })
}
