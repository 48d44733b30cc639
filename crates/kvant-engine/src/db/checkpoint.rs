//! Online copies: tables are immutable, so a checkpoint is hard links and a manifest of its own.
//!
//! Invariants:
//! 1. the copy is made inside the data directory, which has no other writer, and renamed to its
//!    place when it is complete and durable: a directory with the final name is whole;
//! 2. missing parents of the target are made with it and moved by the same rename: a failed
//!    checkpoint leaves nothing, neither at its target nor above;
//! 3. it holds no log: the memtables have been flushed before.

use crate::context::Context;
use crate::format::{FileKind, FileNum, file_path};
use crate::tree::Tree;
use crate::version::ManifestWriter;
use kvant_base::log::Level;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::fs::{missing_dirs, parent_of};
use std::io;
use std::path::{Path, PathBuf};

/// Where a checkpoint is made, in the data directory. The next open removes what a crash leaves.
const UNFINISHED: &str = "checkpoint.unfinished";

pub(crate) struct Target {
    dir: PathBuf,
    /// The directory that is created: `dir`, or the first of its parents that does not exist.
    top: PathBuf,
    /// The path from `top` to `dir`.
    below: PathBuf,
}

impl Target {
    /// Finds the place of `dir`.
    ///
    /// # Errors
    /// `Invalid` when it exists, lies in the data directory, or cannot be a directory.
    pub(crate) fn find(context: &Context, dir: &Path) -> Result<Target> {
        let fs = &context.env.fs;
        let missing = match missing_dirs(&**fs, dir) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(Error::invalid("a part of the path is no directory").with_file(dir));
            }
            found => found.map_err(|e| Error::io("look at", dir, e))?,
        };
        let Some(&top) = missing.last() else { return Err(occupied(dir)) };
        if missing.iter().any(|path| path.file_name().is_none()) {
            let what = "the path of a checkpoint has to end with a name";
            return Err(Error::invalid(what).with_file(dir));
        }
        let below = dir.strip_prefix(top).expect("an ancestor").to_path_buf();
        let canonical =
            |path: &Path| fs.canonical(path).map_err(|e| Error::io("resolve the path of", path, e));
        if canonical(parent_of(top))?.starts_with(canonical(&context.dir)?) {
            return Err(
                Error::invalid("a checkpoint may not lie in the data directory").with_file(dir)
            );
        }
        Ok(Target { dir: dir.to_path_buf(), top: top.to_path_buf(), below })
    }
}

/// Makes a checkpoint of what is in tables. Only one call may run at a time: two would remove each
/// other's files. A close waits for it.
pub(crate) fn checkpoint(tree: &Tree, dir: &Path) -> Result<()> {
    let context = &*tree.context;
    context.check_open()?;
    let target = Target::find(context, dir)?;
    remove_unfinished(context)?;
    let made = make(tree, &target);
    if made.is_err()
        && let Err(error) = remove_unfinished(context)
    {
        // The next checkpoint or open tries again.
        context.log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
    }
    made
}

pub(crate) fn remove_unfinished(context: &Context) -> Result<()> {
    let fs = &context.env.fs;
    let unfinished = context.dir.join(UNFINISHED);
    if fs.exists(&unfinished).map_err(|e| Error::io("look at", &unfinished, e))? {
        fs.remove_dir_all(&unfinished).map_err(|e| Error::io("remove", &unfinished, e))?;
    }
    Ok(())
}

fn make(tree: &Tree, target: &Target) -> Result<()> {
    let context = &*tree.context;
    let fs = &context.env.fs;
    // Taken together; the view keeps the tables until their links are made.
    let (view, last_seq) = {
        let versions = tree.versions.lock();
        (tree.views.load_full(), versions.last_seq)
    };
    let unfinished = context.dir.join(UNFINISHED);
    let inner = unfinished.join(&target.below);
    fs.create_dir_all(&inner).map_err(|e| Error::io("create", &inner, e))?;
    for file in view.version.all_tables() {
        // There may be many.
        context.check_open()?;
        let num = file.meta.num;
        let (from, to) = (
            file_path(&context.dir, FileKind::Table, num),
            file_path(&inner, FileKind::Table, num),
        );
        fs.hard_link(&from, &to).map_err(|e| Error::io("link", &to, e))?;
    }
    let next = view.version.all_tables().map(|file| file.meta.num.0 + 1).max().unwrap_or(1);
    let snapshot = view.version.snapshot_edit(FileNum(next + 1), last_seq, FileNum(0));
    ManifestWriter::create(&**fs, &inner, FileNum(next), &snapshot).map_err(|error| match error
        .kind()
    {
        // A failed checkpoint is removed: its outcome is known.
        ErrorKind::OutcomeUnknown => error.with_kind(ErrorKind::Io),
        _ => error,
    })?;
    let from_inner_to_top = inner.ancestors().take(target.below.components().count() + 1);
    for dir in from_inner_to_top {
        fs.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
    }
    fs.rename(&unfinished, &target.top).map_err(|source| not_renamed(target, source))?;
    let parent = parent_of(&target.top);
    if let Err(source) = fs.sync_dir(parent) {
        fs.remove_dir_all(&target.top).map_err(|e| Error::io("remove", &target.top, e))?;
        return Err(Error::io("sync", parent, source));
    }
    context.log.event(
        Level::Info,
        "checkpoint",
        &[
            ("dir", &target.dir.display()),
            ("tables", &view.version.all_tables().count()),
            ("last_seq", &last_seq.0),
        ],
    );
    Ok(())
}

fn occupied(dir: &Path) -> Error {
    Error::invalid("the directory for the checkpoint exists").with_file(dir)
}

fn not_renamed(target: &Target, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::CrossesDevices => Error::invalid(
            "a checkpoint shares its tables with the database, so it has to be on the same file system",
        )
        .with_file(&target.dir),
        // Another process has created it meanwhile, or it is a dangling symbolic link.
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => {
            occupied(&target.dir)
        }
        _ => Error::io("rename the checkpoint to", &target.top, source),
    }
}
