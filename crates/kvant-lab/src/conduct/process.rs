//! A child process in a process group of its own.
//!
//! Invariants:
//! 1. When a [`Process`] is dropped, no process of its group is left.
//! 2. A signal goes only to a process that has not been reaped: ids are never those of others.
//! 3. The kernel kills the leader when this program is killed. Its children may survive it:
//!    [`cleanup`] has their group on record.
//!
//! Threads: one per process starts it and waits for its end. The leader must not outlive that
//! thread.

use super::cleanup;
use super::stop::Stop;
use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, Result};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group,
    set_parent_process_death_signal, waitid,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at whether a group has ended after its leader.
const LOOK_PERIOD: Duration = Duration::from_millis(5);

/// A running process group.
pub(super) struct Process {
    pid: Pid,
    shared: Arc<Shared>,
    reaper: Option<JoinHandle<()>>,
}

struct Shared {
    state: NamedMutex<State>,
    ended: NamedCondvar,
}

#[derive(Default)]
struct State {
    /// Of the leader; `None` while the group runs.
    status: Option<ExitStatus>,
    /// Until when the group may end itself, if it was asked to.
    stop_until: Option<Instant>,
    /// Whether a process of the group did not end itself.
    was_killed: bool,
}

impl Process {
    /// Starts `command` in a group of its own on `cpus`. Its end ends the current phase.
    ///
    /// # Errors
    /// `Io` with the program.
    pub(super) fn start(command: Command, cpus: &CpuSet, stop: &Stop) -> Result<Process> {
        let program = command.get_program().to_owned();
        let failed = |error| Error::io("start", Path::new(&program), error);
        let shared = Arc::new(Shared {
            state: NamedMutex::new("lab_process", State::default()),
            ended: NamedCondvar::new(WaitKind::Idle, "lab_process_end"),
        });
        let (started, starting) = mpsc::channel();
        let (stop, cpus, of_reaper) = (stop.clone(), *cpus, Arc::clone(&shared));
        let reaper = move || {
            let spawned = spawn(command, &cpus);
            let reported = started.send(spawned.as_ref().map(pid_of).map_err(copy));
            if let (Ok(child), Ok(())) = (spawned, reported) {
                reap(child, &of_reaper, &stop);
            }
        };
        let reaper = std::thread::Builder::new().name("lab-reaper".to_owned()).spawn(reaper);
        let reaper = reaper.map_err(failed)?;
        let panicked = |_| Err(io::Error::other("the starting thread panicked"));
        let pid = starting.recv().unwrap_or_else(panicked).map_err(failed)?;
        Ok(Process { pid, shared, reaper: Some(reaper) })
    }

    /// The id of the leader, which is that of the group.
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// How it ended, in words that follow "the subject"; `None` while it runs.
    pub(super) fn end(&self) -> Option<String> {
        self.shared.state.lock().status.map(words)
    }

    /// Waits for its end; `None` if it still runs then.
    pub(super) fn wait(&self, time_max: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + time_max;
        let mut state = self.shared.state.lock();
        while state.status.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.shared.ended.wait_timeout(state, left);
        }
        state.status
    }

    /// SIGTERM to the group, since a leader such as a shell does not pass it on; a bounded wait for
    /// all of them; and SIGKILL to what is left. Returns whether that was needed.
    ///
    /// # Errors
    /// `Io` if it cannot be signalled.
    pub(super) fn stop(mut self, wait_max: Duration) -> Result<bool> {
        {
            // The reaper reaps under this lock.
            let mut state = self.shared.state.lock();
            if state.status.is_none() {
                state.stop_until = Some(Instant::now() + wait_max);
                kill_process_group(self.pid, Signal::TERM)
                    .map_err(|error| Error::io("signal", Path::new("a subject"), error.into()))?;
            }
        }
        let has_ended = self.wait(wait_max).is_some();
        self.end_group();
        Ok(!has_ended || self.shared.state.lock().was_killed)
    }

    /// Kills what is left of the group and waits for the reaper.
    fn end_group(&mut self) {
        let killed = {
            let mut state = self.shared.state.lock();
            state.stop_until = None;
            if state.status.is_none() { cleanup::kill_group(self.pid) } else { Ok(()) }
        };
        if let Err(error) = killed {
            cleanup::complain(&format!("cannot kill process group {}: {error}", self.id()));
            return;
        }
        if let Some(reaper) = self.reaper.take()
            && reaper.join().is_err()
        {
            cleanup::complain(&format!("the thread that waits for process {} panicked", self.id()));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end_group();
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
    while shared.state.lock().stop_until.is_some_and(|until| Instant::now() < until)
        && cleanup::has_processes(pid)
    {
        std::thread::sleep(LOOK_PERIOD);
    }
    let mut state = shared.state.lock();
    state.was_killed = state.stop_until.is_some() && cleanup::has_processes(pid);
    if let Err(error) = cleanup::kill_group(pid) {
        cleanup::complain(&format!("cannot kill process group {}: {error}", child.id()));
    }
    cleanup::wait_for_group(pid);
    cleanup::forget_group(pid);
    // The leader is a zombie: this does not block.
    state.status = Some(child.wait().unwrap_or_default());
    drop(state);
    shared.ended.notify_all();
    stop.end_phase();
}

/// Spawns on the calling thread, whose CPUs the child inherits.
fn spawn(mut command: Command, cpus: &CpuSet) -> io::Result<Child> {
    command.process_group(0);
    end_with_this_thread(&mut command);
    sched_setaffinity(None, cpus)?;
    cleanup::register_group(|| {
        let child = command.spawn()?;
        let pid = pid_of(&child);
        Ok((child, pid))
    })
}

/// The kernel kills the child when the thread that starts it has ended.
#[expect(unsafe_code, reason = "what runs between fork and exec has no safe interface")]
fn end_with_this_thread(command: &mut Command) {
    let parent = getpid();
    let set = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before.
        if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the closure makes two system calls; it takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(set);
    }
}

/// The same error for another thread.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
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
            cleanup::complain(&format!("cannot restore the CPU affinity: {error}"));
        }
    }
}

#[cfg(test)]
mod tests;
