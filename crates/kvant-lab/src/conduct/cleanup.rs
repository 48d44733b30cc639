//! Process groups and temporary directories, which are removed when the program ends, however it
//! ends.
//!
//! Guards remove both in the ordinary case. [`remove_all`] is for the ends that run no destructor:
//! a second signal, and a panic of a program that aborts.
//!
//! Invariants:
//! 1. A process group is registered before anything else can happen to it: starting and registering
//!    are one step under the lock.
//! 2. After [`remove_all`] nothing is started any more.
//!
//! Threads: any.

use kvant_base::lock::NamedMutex;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::host::procfs::ProcFs;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

static REGISTRY: NamedMutex<Registry> = NamedMutex::new(
    "lab_cleanup",
    Registry { is_closed: false, groups: Vec::new(), dirs: Vec::new() },
);

/// Tries to remove a directory into which a thread may still write.
const REMOVE_TRIES: usize = 5;

/// Longest wait for the end of killed processes: one may be in a long call of the kernel.
const KILL_WAIT_MAX: Duration = Duration::from_secs(10);
const KILL_LOOK_PERIOD: Duration = Duration::from_millis(2);

struct Registry {
    is_closed: bool,
    /// Leaders of process groups.
    groups: Vec<Pid>,
    dirs: Vec<PathBuf>,
}

/// Kills all registered process groups and removes all registered directories.
pub fn remove_all() {
    let mut registry = REGISTRY.lock();
    registry.is_closed = true;
    for group in std::mem::take(&mut registry.groups) {
        if let Err(error) = kill_group(group) {
            eprintln!("kvant: cannot kill process group {}: {error}", group.as_raw_nonzero());
        }
        wait_for_group(group);
    }
    for dir in std::mem::take(&mut registry.dirs) {
        let is_gone = (0..REMOVE_TRIES).any(|_| remove_dir(&dir).is_ok());
        if !is_gone {
            eprintln!("kvant: cannot remove {}", dir.display());
        }
    }
}

/// Starts a process group and registers it. `start` returns what it started, and the leader.
pub(super) fn register_group<T>(start: impl FnOnce() -> io::Result<(T, Pid)>) -> io::Result<T> {
    let mut registry = REGISTRY.lock();
    if registry.is_closed {
        return Err(io::Error::other("the program is ending"));
    }
    let (started, leader) = start()?;
    registry.groups.push(leader);
    Ok(started)
}

/// Forgets a process group whose leader is about to be reaped: its id may be used again.
pub(super) fn forget_group(leader: Pid) {
    REGISTRY.lock().groups.retain(|group| *group != leader);
}

/// Kills what is left of a group. A group without processes is no error.
pub(super) fn kill_group(leader: Pid) -> io::Result<()> {
    match kill_process_group(leader, Signal::KILL) {
        Err(error) if error != Errno::SRCH => Err(error.into()),
        _ => Ok(()),
    }
}

/// Waits until killed processes have ended. Their parents, or init, reap them.
pub(super) fn wait_for_group(leader: Pid) {
    let group = leader.as_raw_nonzero().get().cast_unsigned();
    let until = Instant::now() + KILL_WAIT_MAX;
    while !ProcFs::system().group_members(group).is_empty() {
        if Instant::now() >= until {
            eprintln!("kvant: processes of group {group} have not ended");
            return;
        }
        std::thread::sleep(KILL_LOOK_PERIOD);
    }
}

/// A directory for temporary stores, removed when dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// Creates the directory, empty.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the directory.
    pub(super) fn create(dir: &Path) -> Result<Scratch> {
        let failed = |error| Error::io("create", dir, error);
        let mut registry = REGISTRY.lock();
        if registry.is_closed {
            return Err(Error::new(ErrorKind::Closed, "the program is ending"));
        }
        remove_dir(dir).map_err(failed)?;
        registry.dirs.push(dir.to_path_buf());
        let scratch = Scratch { dir: dir.to_path_buf() };
        drop(registry);
        std::fs::create_dir_all(dir).map_err(failed)?;
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_dir(&self.dir) {
            eprintln!("kvant: cannot remove {}: {error}", self.dir.display());
            return;
        }
        REGISTRY.lock().dirs.retain(|dir| *dir != self.dir);
    }
}

/// Removes a directory with its contents, if it exists.
pub(super) fn remove_dir(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
