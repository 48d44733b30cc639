//! The samplers, and the session that runs them.
//!
//! ```text
//! thread:  signal handler --> its signal ring -------.
//!          allocator, locks --> its synchronous ring -+--> drain (every 200 ms) --> tree of stacks, samples --> Recording
//! ```
//!
//! - [`handler`](self) takes samples of CPU time on the sampled thread, sent there by a timer or by
//!   a perf event of the thread.
//! - [`ring::record`] takes those of allocations and waits, on the thread that allocates or waits.
//! - The drain, a task of the environment's spawner, finds new threads, gives them rings and
//!   timers, and collects what is in the rings.
//!
//! Invariants:
//! 1. Nothing allocates, locks or waits while it takes a sample. What does not fit is dropped and
//!    counted.
//! 2. One session at a time in a process: the signal, the rings and the allocator are the
//!    process's.
//! 3. Nothing that a late signal may touch is ever taken away.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::recording::Recording;
use kvant_base::Events;
use kvant_base::wait::WaitKind;
use kvant_env::{Env, TaskHandle};

#[expect(unsafe_code, reason = "a global allocator is an unsafe trait")]
mod alloc;
pub mod anchor;
#[expect(unsafe_code, reason = "registers have no safe interface")]
mod arch;
mod chance;
#[expect(unsafe_code, reason = "CPU clocks of other threads have no safe interface")]
pub mod clock;
#[expect(unsafe_code, reason = "asks the loader what is mapped")]
mod code;
#[expect(unsafe_code, reason = "a signal handler")]
mod handler;
mod intern;
#[expect(unsafe_code, reason = "maps memory for rings that is never given back")]
mod lane;
mod live;
#[expect(unsafe_code, reason = "shares memory with the kernel")]
mod perf;
#[expect(unsafe_code, reason = "walks the caller's stack, and carries static strings as words")]
pub mod ring;
mod roster;
mod samples;
mod session;
mod spans;
mod stack;
mod thinning;
mod threads;
#[expect(unsafe_code, reason = "timers that signal a thread have no safe interface")]
mod timer;
mod wait;
#[expect(unsafe_code, reason = "follows frame pointers")]
mod walk;

pub use alloc::Allocator;
pub use handler::interrupt_threads;
use session::Drain;

/// What to sample. The default is all of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPU time.
    pub cpu: Option<CpuOptions>,
    /// Allocations: one sample per this many bytes, on average.
    pub alloc_mean_bytes: Option<u64>,
    /// Waits: one sample per this many nanoseconds, on average, by kind in the order of
    /// [`WaitKind::ALL`].
    pub wait_mean_ns: Option<[u64; WaitKind::ALL.len()]>,
    /// How much a thread can hand over between two drains, in each of its two rings; at most 128
    /// KiB.
    pub ring_bytes: usize,
    /// How many samples are kept, of 56 bytes each. When there are more, small ones are left out by
    /// chance and others weigh more.
    pub samples_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        const MS: u64 = 1_000_000;
        Options {
            cpu: Some(CpuOptions::default()),
            alloc_mean_bytes: Some(512 << 10),
            // Threads with nothing to do wait all the time: they must not fill the recording.
            wait_mean_ns: Some([MS, 20 * MS, MS, MS, MS]),
            ring_bytes: ring::RING_BYTES,
            samples_max: 1_000_000,
        }
    }
}

/// How to sample CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuOptions {
    /// Samples per second of CPU time; 0 for 99.
    pub rate_hz: u32,
    /// By what means.
    pub engine: Engine,
}

/// By what means CPU time is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Timers that interrupt a thread at random moments: on any Linux, and cheap. Time in the
    /// kernel counts for the function that called it.
    #[default]
    Timer,
    /// Perf events: kernel frames, where they are permitted; else only time outside of the kernel.
    /// They cost some 2 us whenever another thread gets the processor (docs/decisions/0009).
    Perf,
}

/// Why there is no profile.
#[derive(Debug)]
pub enum StartError {
    /// Another session runs in this process.
    AlreadyRunning,
    /// The system refuses what sampling needs.
    Refused(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::AlreadyRunning => f.write_str("a profile is being taken already"),
            StartError::Refused(error) => {
                write!(f, "the system refuses to sample this process: {error}")
            }
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StartError::AlreadyRunning => None,
            StartError::Refused(error) => Some(error),
        }
    }
}

static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// A session, from its start until it is stopped or dropped.
pub struct Profiler {
    /// `None` once stopped.
    session: Option<(Arc<Drain>, Arc<dyn TaskHandle>)>,
}

impl Profiler {
    /// Begins to sample all threads of this process. `events` are what the recording's spans come
    /// from.
    ///
    /// # Errors
    /// When another session runs, or the system refuses what was asked for.
    pub fn start(
        options: Options,
        env: &Env,
        events: Option<Arc<Events>>,
    ) -> Result<Profiler, StartError> {
        if IS_RUNNING.swap(true, Ordering::AcqRel) {
            return Err(StartError::AlreadyRunning);
        }
        match Drain::start(options, env, events) {
            Ok(drain) => {
                let drain = Arc::new(drain);
                let task = env.spawner.spawn(Arc::clone(&drain) as _);
                Ok(Profiler { session: Some((drain, task)) })
            }
            Err(error) => {
                IS_RUNNING.store(false, Ordering::Release);
                Err(StartError::Refused(error))
            }
        }
    }

    /// Ends the session: what was seen, without symbols.
    pub fn stop(mut self) -> Recording {
        self.end().expect("only `stop` and `drop` end a session, and both only once")
    }

    fn end(&mut self) -> Option<Recording> {
        let (drain, task) = self.session.take()?;
        drain.request_end();
        task.wake();
        task.join();
        let recording = drain.finish();
        IS_RUNNING.store(false, Ordering::Release);
        Some(recording)
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        self.end();
    }
}
