//! Online copies: tables are immutable, so a checkpoint is hard links and a manifest of its own.
//!
//! The copy is made under a temporary name and renamed when it is complete and durable: a directory that has the final name is
//! whole. It holds no log: what was in memory has been flushed before.

use super::core::Core;
use super::recovery::parent_of;
use crate::format::{FileKind, FileNum, file_path};
use crate::version::ManifestWriter;
use kvant_base::log::Level;
use kvant_base::{Error, Result};
use std::path::{Path, PathBuf};

pub(crate) fn checkpoint(core: &Core, dir: &Path) -> Result<()> {
    let fs = &core.env.fs;
    let _checkpointing = core.checkpointing.lock();
    if fs.exists(dir).map_err(|e| Error::io("look at", dir, e))? {
        return Err(Error::invalid("the directory for the checkpoint exists").with_file(dir));
    }
    // One look at both: the view holds the tables until their links are made.
    let (view, last_seq) = {
        let versions = core.versions.lock();
        (core.views.load_full(), versions.last_seq)
    };
    let unfinished = with_suffix(dir, ".unfinished");
    if fs
        .exists(&unfinished)
        .map_err(|e| Error::io("look at", &unfinished, e))?
    {
        fs.remove_dir_all(&unfinished)
            .map_err(|e| Error::io("remove", &unfinished, e))?;
    }
    fs.create_dir_all(&unfinished)
        .map_err(|e| Error::io("create", &unfinished, e))?;
    for file in view.version.all_tables() {
        let num = file.meta.num;
        let (from, to) = (
            file_path(&core.dir, FileKind::Table, num),
            file_path(&unfinished, FileKind::Table, num),
        );
        fs.hard_link(&from, &to).map_err(|e| Error::io("link", &to, e))?;
    }
    let next = view
        .version
        .all_tables()
        .map(|file| file.meta.num.0 + 1)
        .max()
        .unwrap_or(1);
    let snapshot = view
        .version
        .snapshot_edit(FileNum(next + 1), last_seq, FileNum(0));
    ManifestWriter::create(&**fs, &unfinished, FileNum(next), &snapshot)?;
    fs.sync_dir(&unfinished)
        .map_err(|e| Error::io("sync", &unfinished, e))?;
    fs.rename(&unfinished, dir)
        .map_err(|e| Error::io("rename", &unfinished, e))?;
    let parent = parent_of(dir);
    fs.sync_dir(parent).map_err(|e| Error::io("sync", parent, e))?;
    core.log.event(
        Level::Info,
        "checkpoint",
        &[
            ("dir", &dir.display()),
            ("tables", &view.version.all_tables().count()),
            ("last_seq", &last_seq.0),
        ],
    );
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
