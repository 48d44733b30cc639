//! Starting and stopping a session.
//!
//! A process runs one session at a time. A background session ends when [`Profiler::start`] is
//! called, so a server that always samples at a low rate can be recorded at any time.
//!
//! Threads: any. A lock is held while sessions in the background start, and end for another.

use super::options::Options;
use super::session::Drain;
use crate::recording::Recording;
use kvant_base::Events;
use kvant_base::lock::{NamedGuard, NamedMutex};
use kvant_env::{Env, TaskHandle};
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a session did not start.
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

impl Error for StartError {}

static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// A running session. It ends when stopped or dropped.
pub struct Profiler {
    /// `None` once stopped.
    session: Option<(Arc<Drain>, Arc<dyn TaskHandle>)>,
}

impl Profiler {
    /// Starts to sample all threads of this process, and ends a background session. The recording's
    /// spans come from `events`.
    pub fn start(
        options: Options,
        env: &Env,
        events: Option<Arc<Events>>,
    ) -> Result<Profiler, StartError> {
        let _none_starts_meanwhile = give_way();
        Profiler::begin(options, env, events)
    }

    /// Starts to sample.
    fn begin(
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

    /// Ends the session and returns its recording, without symbols.
    pub fn stop(mut self) -> Recording {
        self.end().expect("only `stop` and `drop` end a session, and each only once")
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

/// Gets the recording, which is without spans and symbols.
type OnEnd = Box<dyn FnOnce(Recording) + Send>;

/// A background session. It ends when it is dropped, or when another session starts.
#[must_use = "the session ends when this is dropped"]
pub struct Background {
    number: u64,
}

/// The session of this process.
struct Running {
    number: u64,
    profiler: Profiler,
    on_end: OnEnd,
}

static RUNNING: NamedMutex<Option<Running>> = NamedMutex::new("background profile", None);
static STARTED_COUNT: AtomicU64 = AtomicU64::new(0);

impl Background {
    /// Starts a session. `on_end` gets its recording, on the thread that ends it.
    ///
    /// # Errors
    /// As [`Profiler::start`], also if a background session runs.
    pub fn start(
        options: Options,
        env: &Env,
        on_end: impl FnOnce(Recording) + Send + 'static,
    ) -> Result<Background, StartError> {
        let mut running = RUNNING.lock();
        if running.is_some() {
            return Err(StartError::AlreadyRunning);
        }
        let profiler = Profiler::begin(options, env, None)?;
        let number = STARTED_COUNT.fetch_add(1, Ordering::Relaxed);
        *running = Some(Running { number, profiler, on_end: Box::new(on_end) });
        Ok(Background { number })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Held until the session has ended: one that is asked for meanwhile waits for that.
        let mut running = RUNNING.lock();
        running.take_if(|running| running.number == self.number).into_iter().for_each(Running::end);
    }
}

impl Running {
    fn end(self) {
        (self.on_end)(self.profiler.stop());
    }
}

/// Ends the background session, if there is one. None starts until the result is dropped.
fn give_way() -> NamedGuard<'static, Option<Running>> {
    let mut running = RUNNING.lock();
    running.take().into_iter().for_each(Running::end);
    running
}
