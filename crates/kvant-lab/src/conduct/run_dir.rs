//! The files of a run directory, written so that an interrupted run is readable.
//!
//! Invariants:
//! 1. `run.json` is replaced atomically: it is always whole.
//! 2. An attempt is in `journal.jsonl` only when its files are complete and synced.
//! 3. One run at a time uses a directory: its lock ends with the process.
//! 4. A line of the journal that was cut short is dropped when the run is resumed.

use crate::record::{Attempt, FORMAT, Run, VERSION};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::host;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

const PLAN: &str = "plan.toml";
const RUN: &str = "run.json";
const JOURNAL: &str = "journal.jsonl";
/// What is to be removed if the program is killed.
pub(super) const LEFTOVERS: &str = "cleanup.json";

/// A run directory.
#[derive(Debug)]
pub(super) struct RunDir {
    dir: PathBuf,
    /// The directory, locked.
    _lock: File,
}

/// What a run directory says of an earlier run.
#[derive(Debug)]
pub(super) struct Earlier {
    pub(super) run: Run,
    pub(super) attempts: Vec<Attempt>,
}

impl RunDir {
    /// Creates the directory for a new run.
    ///
    /// # Errors
    /// `Invalid` if it is not empty, or in use; `Io` and `NoSpace` with the file.
    pub(super) fn create(dir: &Path, plan_text: &str) -> Result<RunDir> {
        fs::create_dir_all(dir).map_err(|error| Error::io("create", dir, error))?;
        let run_dir = RunDir { dir: dir.to_path_buf(), _lock: lock(dir)? };
        if run_dir.path(RUN).exists() {
            let problem =
                "there is a run already: choose another directory, or continue it with --resume";
            return Err(Error::invalid(problem).with_file(dir));
        }
        // At the end of a run, parts of its directory are removed.
        let mut files = fs::read_dir(dir).map_err(|error| Error::io("read", dir, error))?;
        if files.next().is_some() {
            let problem = "the directory is not empty: choose another one";
            return Err(Error::invalid(problem).with_file(dir));
        }
        run_dir.replace(PLAN, plan_text.as_bytes())?;
        run_dir.replace(JOURNAL, b"")?;
        Ok(run_dir)
    }

    /// Opens the directory of an earlier run.
    ///
    /// # Errors
    /// `Invalid` if it holds none, or is in use; `Unsupported` if a later version wrote it; `Io`.
    pub(super) fn resume(dir: &Path) -> Result<(RunDir, Earlier)> {
        let run_dir = RunDir { dir: dir.to_path_buf(), _lock: lock(dir)? };
        let run = read_run(&run_dir.path(RUN))?;
        let path = run_dir.path(JOURNAL);
        let text = host::read_text(&path).map_err(|error| Error::io("read", &path, error))?;
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let attempts = whole
            .lines()
            .map(|line| {
                serde_json::from_str(line).map_err(|error| {
                    Error::invalid(format!("not the journal of a run: {error}")).with_file(&path)
                })
            })
            .collect::<Result<Vec<Attempt>>>()?;
        if whole.len() < text.len() {
            run_dir.replace(JOURNAL, whole.as_bytes())?;
        }
        Ok((run_dir, Earlier { run, attempts }))
    }

    pub(super) fn root(&self) -> &Path {
        &self.dir
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// The directory of an attempt, emptied.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the directory.
    pub(super) fn attempt(&self, number: u32) -> Result<AttemptDir> {
        let dir = self.dir.join("attempts").join(format!("{number:04}"));
        super::cleanup::remove_dir(&dir).map_err(|error| Error::io("remove", &dir, error))?;
        fs::create_dir_all(&dir).map_err(|error| Error::io("create", &dir, error))?;
        Ok(AttemptDir { dir })
    }

    /// Replaces `run.json`.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn write_run(&self, run: &Run) -> Result<()> {
        self.replace(RUN, &json(run))
    }

    /// Appends an attempt to the journal. Its files must be complete.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn append(&self, attempt: &Attempt) -> Result<()> {
        let path = self.path(JOURNAL);
        let mut line = serde_json::to_vec(attempt).expect("all keys are strings");
        line.push(b'\n');
        let append = || {
            let mut file = File::options().append(true).open(&path)?;
            file.write_all(&line)?;
            file.sync_data()
        };
        append().map_err(|error| Error::io("append to", &path, error))
    }

    fn replace(&self, name: &str, contents: &[u8]) -> Result<()> {
        let (path, new) = (self.path(name), self.path(&format!("{name}.new")));
        let replace = || {
            let mut file = File::create(&new)?;
            file.write_all(contents)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.dir)?.sync_all()
        };
        replace().map_err(|error| Error::io("write", &path, error))
    }
}

/// The directory of an attempt.
#[derive(Debug)]
pub(super) struct AttemptDir {
    dir: PathBuf,
}

impl AttemptDir {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn write(&self, name: &str, contents: &[u8]) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, contents).map_err(|error| Error::io("write", &path, error))
    }

    /// Writes `value` as JSON.
    ///
    /// # Errors
    /// As [`AttemptDir::write`].
    pub(super) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        self.write(name, &json(value))
    }

    /// Makes the files durable, then their names and the directory's.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn sync(&self) -> Result<()> {
        let read = |error| Error::io("read", &self.dir, error);
        for entry in fs::read_dir(&self.dir).map_err(read)? {
            sync(&entry.map_err(read)?.path())?;
        }
        // The directory, that of all attempts, and that of the run.
        self.dir.ancestors().take(3).try_for_each(sync)
    }
}

fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::io("sync", path, error))
}

/// Locks a directory for this process.
fn lock(dir: &Path) -> Result<File> {
    let file = File::open(dir).map_err(|error| Error::io("open", dir, error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => {
            Err(Error::invalid("another run uses the directory now").with_file(dir))
        }
        Err(error) => Err(Error::io("lock", dir, error.into())),
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("all keys are strings");
    text.push(b'\n');
    text
}

fn read_run(path: &Path) -> Result<Run> {
    let text = host::read_text(path).map_err(|error| Error::io("read", path, error))?;
    let refused = |error: serde_json::Error| {
        Error::invalid(format!("not a run of kvant lab: {error}")).with_file(path)
    };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(refused)?;
    if value["format"] != FORMAT {
        return Err(Error::invalid("not a run of kvant lab").with_file(path));
    }
    if value["version"].as_u64().is_none_or(|version| version > u64::from(VERSION)) {
        let problem =
            format!("version {} of the run, and this program knows {VERSION}", value["version"]);
        return Err(Error::new(ErrorKind::Unsupported, problem).with_file(path));
    }
    serde_json::from_value(value).map_err(refused)
}
