//! Starting and stopping a session.

use super::background;
use super::options::Options;
use super::session::Drain;
use crate::recording::Recording;
use kvant_base::Events;
use kvant_env::{Env, TaskHandle};
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
        let _none_starts_meanwhile = background::give_way();
        Profiler::begin(options, env, events)
    }

    /// Starts to sample.
    pub(super) fn begin(
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
