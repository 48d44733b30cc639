//! A child process in a process group of its own.
//!
//! Invariants:
//! 1. When a [`Process`] is dropped, no process of its group is left.
//! 2. A signal goes only to a process that has not been reaped: ids are never those of others.
//!
//! Threads: one per process waits for its end.

use super::cleanup;
use super::stop::Stop;
use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running process group.
pub(super) struct Process {
    pid: Pid,
    shared: Arc<Shared>,
    reaper: Option<JoinHandle<()>>,
}

struct Shared {
    /// `None` while it runs.
    status: NamedMutex<Option<ExitStatus>>,
    ended: NamedCondvar,
}

impl Process {
    /// Starts `command` in a group of its own on `cpus`. Its end ends the current phase.
    ///
    /// # Errors
    /// `Io` with the program.
    pub(super) fn start(command: Command, cpus: &CpuSet, stop: &Stop) -> Result<Process> {
        let program = command.get_program().to_owned();
        let failed = |error| Error::io("start", Path::new(&program), error);
        let child = spawn(command, cpus).map_err(failed)?;
        let pid = pid_of(&child);
        let shared = Arc::new(Shared {
            status: NamedMutex::new("lab_process", None),
            ended: NamedCondvar::new(WaitKind::Idle, "lab_process_end"),
        });
        let mut process = Process { pid, shared: Arc::clone(&shared), reaper: None };
        let stop = stop.clone();
        let reaper = std::thread::Builder::new()
            .name("lab-reaper".to_owned())
            .spawn(move || reap(child, &shared, &stop))
            .map_err(failed)?;
        process.reaper = Some(reaper);
        Ok(process)
    }

    /// The id of the leader, which is that of the group.
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// How it ended, in words that follow "the subject"; `None` while it runs.
    pub(super) fn end(&self) -> Option<String> {
        self.shared.status.lock().map(words)
    }

    /// Waits for its end; `None` if it still runs then.
    pub(super) fn wait(&self, time_max: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + time_max;
        let mut status = self.shared.status.lock();
        while status.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            status = self.shared.ended.wait_timeout(status, left);
        }
        *status
    }

    /// SIGTERM, a bounded wait, and SIGKILL to what is left of the group.
    ///
    /// # Errors
    /// `Io` if it cannot be signalled.
    pub(super) fn stop(self, wait_max: Duration) -> Result<()> {
        self.signal(Signal::TERM)?;
        // The reaper kills what is left of the group; dropping waits for that.
        match self.wait(wait_max) {
            Some(_) | None => Ok(()),
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        // The reaper reaps under this lock.
        let status = self.shared.status.lock();
        if status.is_none() {
            kill_process(self.pid, signal)
                .map_err(|error| Error::io("signal", Path::new("a subject"), error.into()))?;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let killed = {
            let status = self.shared.status.lock();
            if status.is_none() { cleanup::kill_group(self.pid) } else { Ok(()) }
        };
        if let Err(error) = killed {
            eprintln!("kvant: cannot kill process group {}: {error}", self.id());
            return;
        }
        if let Some(reaper) = self.reaper.take()
            && reaper.join().is_err()
        {
            eprintln!("kvant: the thread that waits for process {} panicked", self.id());
        }
    }
}

/// Waits for the end of the leader, kills the rest of the group and reaps.
fn reap(mut child: Child, shared: &Shared, stop: &Stop) {
    let pid = pid_of(&child);
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(error) if error == rustix::io::Errno::INTR => {}
            Ok(_) | Err(_) => break,
        }
    }
    let mut status = shared.status.lock();
    if let Err(error) = cleanup::kill_group(pid) {
        eprintln!("kvant: cannot kill process group {}: {error}", child.id());
    }
    cleanup::wait_for_group(pid);
    cleanup::forget_group(pid);
    // The leader is a zombie: this does not block.
    *status = Some(child.wait().unwrap_or_default());
    drop(status);
    shared.ended.notify_all();
    stop.end_phase();
}

/// Spawns on a thread of its own, whose CPUs the child inherits.
fn spawn(mut command: Command, cpus: &CpuSet) -> io::Result<Child> {
    command.process_group(0);
    let spawning = || {
        sched_setaffinity(None, cpus)?;
        cleanup::register_group(|| {
            let child = command.spawn()?;
            let pid = pid_of(&child);
            Ok((child, pid))
        })
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(spawning);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
    })
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).expect("a child has a positive id")
}

fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The CPUs that the calling thread may use.
///
/// # Errors
/// `Io`.
pub(super) fn own_cpus() -> Result<CpuSet> {
    sched_getaffinity(None)
        .map_err(|error| Error::io("read", Path::new("the CPU affinity"), error.into()))
}

/// The CPUs with these numbers; all of `allowed` if there are none.
pub(super) fn cpu_set(cpus: &[u32], allowed: &CpuSet) -> CpuSet {
    if cpus.is_empty() {
        return *allowed;
    }
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu as usize));
    set
}

/// Binds the calling thread, and the threads that it starts, to CPUs until dropped.
pub(super) struct Bound {
    before: CpuSet,
}

impl Bound {
    /// # Errors
    /// `Invalid` if this machine has none of the CPUs.
    pub(super) fn to(cpus: &CpuSet) -> Result<Bound> {
        let before = own_cpus()?;
        sched_setaffinity(None, cpus).map_err(|error| {
            Error::invalid(format!("the generator cannot run on the planned CPUs: {error}"))
        })?;
        Ok(Bound { before })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Err(error) = sched_setaffinity(None, &self.before) {
            eprintln!("kvant: cannot restore the CPU affinity: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
