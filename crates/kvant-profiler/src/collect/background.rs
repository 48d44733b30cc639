//! A session that runs when nobody asks for another one.
//!
//! A process runs one session at a time. [`Profiler::start`] ends a background session first, so
//! that a server that always samples a little can be recorded at any time.
//!
//! Threads: any. The lock is held while sessions start and end.

use super::options::Options;
use super::profiler::{Profiler, StartError};
use crate::recording::Recording;
use kvant_base::lock::{NamedGuard, NamedMutex};
use kvant_env::Env;
use std::sync::atomic::{AtomicU64, Ordering};

/// What becomes of the recording, which is without spans and symbols.
type OnEnd = Box<dyn FnOnce(Recording) + Send>;

/// A background session. It ends when it is dropped, or when another session starts.
#[must_use = "the session ends when this is dropped"]
pub struct Background {
    number: u64,
}

/// The session of this process.
pub(super) struct Running {
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
        let ended = RUNNING.lock().take_if(|running| running.number == self.number);
        ended.into_iter().for_each(Running::end);
    }
}

impl Running {
    fn end(self) {
        (self.on_end)(self.profiler.stop());
    }
}

/// Ends the background session, if there is one. None starts until the result is dropped.
pub(super) fn give_way() -> NamedGuard<'static, Option<Running>> {
    let mut running = RUNNING.lock();
    running.take().into_iter().for_each(Running::end);
    running
}
