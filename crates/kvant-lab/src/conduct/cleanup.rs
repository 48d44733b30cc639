//! Process groups and temporary directories, which are removed when the program ends, however it
//! ends.
//!
//! Guards remove both in the ordinary case. [`remove_all`] is for the ends that run no destructor:
//! a second signal, and a panic of a program that aborts. A `Record` is for SIGKILL: it has in a
//! file what there is to remove, and `remove_leftovers` of the next run in the same directory
//! removes it.
//!
//! Invariants:
//! 1. A process group is registered before anything else can happen to it: starting and registering
//!    are one step under the lock.
//! 2. After [`remove_all`] nothing is started any more.
//! 3. Processes on record are killed only if they cannot be others with the same ids: in the same
//!    boot, a leader that started when the record says, or members of its group that started later.
//!    The kernel gives no process the id of a group that has members.
//!
//! Threads: any.

use kvant_base::lock::NamedMutex;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::host::{self, procfs::ProcFs};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

static REGISTRY: NamedMutex<Registry> = NamedMutex::new(
    "lab_cleanup",
    Registry { is_closed: false, groups: Vec::new(), dirs: Vec::new(), records: Vec::new() },
);

/// Names of directories for temporary stores: in a run directory, and elsewhere with a process id.
pub(super) const SCRATCH: &str = "scratch";
pub(super) const SCRATCH_PREFIX: &str = "kvant-lab-";

/// Tries to remove a directory into which a thread may still write.
const REMOVE_TRIES: usize = 5;

/// Longest wait for the end of killed processes: one may be in a long call of the kernel.
const KILL_WAIT_MAX: Duration = Duration::from_secs(10);
const KILL_LOOK_PERIOD: Duration = Duration::from_millis(2);

struct Registry {
    is_closed: bool,
    groups: Vec<Group>,
    dirs: Vec<PathBuf>,
    /// Files that have the rest.
    records: Vec<PathBuf>,
}

/// A process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Group {
    leader: i32,
    /// When the leader started, in ticks since the boot.
    start_ticks: u64,
}

/// The content of a record.
#[derive(Debug, Serialize, Deserialize)]
struct Leftovers {
    boot_id: String,
    groups: Vec<Group>,
    /// Absolute.
    dirs: Vec<PathBuf>,
}

impl Registry {
    /// Writes the records. A run goes on without: they matter only if it is killed.
    fn save(&self) {
        let leftovers = Leftovers {
            boot_id: ProcFs::system().boot_id().unwrap_or_default(),
            groups: self.groups.clone(),
            dirs: self.dirs.clone(),
        };
        let text = serde_json::to_vec(&leftovers).expect("all keys are strings");
        for record in &self.records {
            if let Err(error) = host::replace_file(record, &text) {
                complain(&format!("cannot write {}: {error}", record.display()));
            }
        }
    }
}

/// Says what could not be cleaned up. The standard error may be a file on a full disk: then nothing
/// can say it.
pub(super) fn complain(problem: &str) {
    match writeln!(io::stderr(), "kvant: {problem}") {
        Ok(()) | Err(_) => {}
    }
}

/// Kills all registered process groups and removes all registered directories.
pub fn remove_all() {
    let mut registry = REGISTRY.lock();
    registry.is_closed = true;
    for group in std::mem::take(&mut registry.groups) {
        let Some(leader) = Pid::from_raw(group.leader) else { continue };
        if let Err(error) = kill_group(leader) {
            complain(&format!("cannot kill process group {}: {error}", group.leader));
        }
        wait_for_group(leader);
    }
    for dir in std::mem::take(&mut registry.dirs) {
        let is_gone = (0..REMOVE_TRIES).any(|_| remove_dir(&dir).is_ok());
        if !is_gone {
            complain(&format!("cannot remove {}", dir.display()));
            registry.dirs.push(dir);
        }
    }
    if !registry.dirs.is_empty() {
        // The next run tries again.
        registry.save();
        return;
    }
    for record in std::mem::take(&mut registry.records) {
        remove_record(&record);
    }
}

/// Starts a process group and registers it. `start` returns what it started, and the leader.
pub(super) fn register_group<T>(start: impl FnOnce() -> io::Result<(T, Pid)>) -> io::Result<T> {
    let mut registry = REGISTRY.lock();
    if registry.is_closed {
        return Err(io::Error::other("the program is ending"));
    }
    let (started, leader) = start()?;
    let leader = leader.as_raw_nonzero().get();
    let start = ProcFs::system().process_start_ticks(leader.cast_unsigned());
    registry.groups.push(Group { leader, start_ticks: start.unwrap_or_default() });
    registry.save();
    Ok(started)
}

/// Forgets a process group whose leader is about to be reaped: its id may be used again.
pub(super) fn forget_group(leader: Pid) {
    let leader = leader.as_raw_nonzero().get();
    let mut registry = REGISTRY.lock();
    registry.groups.retain(|group| group.leader != leader);
    registry.save();
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
    let until = Instant::now() + KILL_WAIT_MAX;
    while has_processes(leader) {
        if Instant::now() >= until {
            complain(&format!("processes of group {} have not ended", leader.as_raw_nonzero()));
            return;
        }
        std::thread::sleep(KILL_LOOK_PERIOD);
    }
}

/// Whether a process of a group has not ended.
pub(super) fn has_processes(leader: Pid) -> bool {
    let group = leader.as_raw_nonzero().get().cast_unsigned();
    !ProcFs::system().group_members(group).is_empty()
}

/// A file that says what to remove if this program is killed. It is removed when dropped.
#[derive(Debug)]
pub(super) struct Record(PathBuf);

impl Record {
    /// Writes the file from now on, whenever there is more or less to remove.
    ///
    /// # Errors
    /// `Closed` if the program is ending.
    pub(super) fn keep(file: &Path) -> Result<Record> {
        let mut registry = REGISTRY.lock();
        if registry.is_closed {
            return Err(Error::new(ErrorKind::Closed, "the program is ending"));
        }
        registry.records.push(file.to_path_buf());
        registry.save();
        Ok(Record(file.to_path_buf()))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut registry = REGISTRY.lock();
        registry.records.retain(|record| *record != self.0);
        remove_record(&self.0);
    }
}

fn remove_record(record: &Path) {
    // A full disk may leave the beginning of the next one.
    for file in [record, &record.with_added_extension("new")] {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                complain(&format!("cannot remove {}: {error}", file.display()));
            }
            _ => {}
        }
    }
}

/// Ends and removes what a killed program has left, by its record. Returns how many processes there
/// were.
///
/// # Errors
/// `Io` if the record cannot be read, or what it names cannot be removed; `Invalid` if it is none.
pub(super) fn remove_leftovers(record: &Path) -> Result<usize> {
    let text = match host::read_text(record) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        text => text.map_err(|error| Error::io("read", record, error))?,
    };
    let leftovers: Leftovers = serde_json::from_str(&text)
        .map_err(|error| Error::invalid(error.to_string()).with_file(record))?;
    let proc = ProcFs::system();
    let mut count = 0;
    for group in &leftovers.groups {
        let Some(leader) = Pid::from_raw(group.leader) else { continue };
        let members = proc.group_members(group.leader.cast_unsigned());
        let is_ours = |member: &u32| match proc.process_start_ticks(*member) {
            Some(ticks) if *member == group.leader.cast_unsigned() => ticks == group.start_ticks,
            Some(ticks) => ticks >= group.start_ticks,
            None => true,
        };
        let is_same_boot = proc.boot_id().is_some_and(|boot_id| boot_id == leftovers.boot_id);
        if members.is_empty() || !is_same_boot || !members.iter().all(is_ours) {
            continue;
        }
        count += members.len();
        kill_group(leader).map_err(|error| Error::io("kill", Path::new("a subject"), error))?;
        wait_for_group(leader);
    }
    // Others than those of a run are never removed, whatever the file says.
    let is_of_run = |dir: &&PathBuf| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        dir.is_absolute() && (name == SCRATCH || name.starts_with(SCRATCH_PREFIX))
    };
    for dir in leftovers.dirs.iter().filter(is_of_run) {
        remove_dir(dir).map_err(|error| Error::io("remove", dir, error))?;
    }
    remove_record(record);
    Ok(count)
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
        registry.save();
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
            complain(&format!("cannot remove {}: {error}", self.dir.display()));
            return;
        }
        let mut registry = REGISTRY.lock();
        registry.dirs.retain(|dir| *dir != self.dir);
        registry.save();
    }
}

/// Removes a directory with its contents, if it exists.
pub(super) fn remove_dir(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
