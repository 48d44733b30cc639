//! SIGINT and SIGTERM: the first ends the load early, and its results are printed; the second ends
//! the process.
//!
//! Threads: the main thread waits for signals, a second one runs the command.

use kvant_base::lock::NamedMutex;
use kvant_load::Stopper;
use std::io;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

/// The exit code that shells report for a process killed by SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

/// A request to end the load early.
#[derive(Clone)]
pub(super) struct Stop(Arc<NamedMutex<StopState>>);

#[derive(Default)]
struct StopState {
    is_requested: bool,
    stopper: Option<Stopper>,
}

impl StopState {
    /// Ends the load if a signal was received and a load has started.
    fn apply(&self) {
        if let Some(stopper) = self.stopper.as_ref().filter(|_| self.is_requested) {
            stopper.stop();
        }
    }
}

impl Stop {
    /// Whether a signal was received.
    pub(super) fn is_requested(&self) -> bool {
        self.0.lock().is_requested
    }

    /// Ends this load on the next signal, or at once if one was received.
    pub(super) fn attach(&self, stopper: Stopper) {
        let mut state = self.0.lock();
        state.stopper = Some(stopper);
        state.apply();
    }

    /// Handles a signal; returns whether it is not the first.
    fn request(&self) -> bool {
        let mut state = self.0.lock();
        let is_second = std::mem::replace(&mut state.is_requested, true);
        state.apply();
        is_second
    }
}

/// Runs `work` on its own thread; returns its exit code, or that of a second signal.
///
/// # Errors
/// The system provides no signal handler or thread.
pub(super) fn run(work: impl FnOnce(Stop) -> u8 + Send + 'static) -> io::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit_code = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stop = Stop(Arc::new(NamedMutex::new("load_stop", StopState::default())));
        let mut done = spawn_blocking({
            let stop = stop.clone();
            move || work(stop)
        });
        loop {
            tokio::select! {
                exit_code = &mut done => {
                    return Ok(exit_code.expect("a panic in a blocking task has ended the process, or the test"));
                }
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.request() {
                return Ok(EXIT_INTERRUPTED);
            }
        }
    });
    // After a second signal `work` may still run: do not wait for it.
    runtime.shutdown_background();
    exit_code
}
