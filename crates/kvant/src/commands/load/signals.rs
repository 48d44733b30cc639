//! SIGINT and SIGTERM: the first ends the load early, and its results are printed; the second ends
//! the process.
//!
//! Threads: the main thread waits for signals, a second one runs the command.

use kvant_base::lock::NamedMutex;
use kvant_load::Stopper;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;

/// The exit code that shells report for a process killed by SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

/// A request to end the load early.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<Shared>);

struct Shared {
    is_requested: AtomicBool,
    stopper: NamedMutex<Option<Stopper>>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            is_requested: AtomicBool::new(false),
            stopper: NamedMutex::new("load_stopper", None),
        }
    }
}

impl Stop {
    /// Whether a signal was received.
    pub(super) fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::SeqCst)
    }

    /// Ends this load on the next signal, or at once if one was received.
    pub(super) fn attach(&self, stopper: Stopper) {
        *self.0.stopper.lock() = Some(stopper);
        if self.is_requested() {
            self.stop_load();
        }
    }

    /// Handles a signal; returns whether it is not the first.
    fn request(&self) -> bool {
        let is_second = self.0.is_requested.swap(true, Ordering::SeqCst);
        self.stop_load();
        is_second
    }

    fn stop_load(&self) {
        if let Some(stopper) = self.0.stopper.lock().as_ref() {
            stopper.stop();
        }
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
        let stop = Stop::default();
        let mut done = {
            let stop = stop.clone();
            spawn_blocking(move || work(stop))
        };
        loop {
            tokio::select! {
                exit_code = &mut done => {
                    return Ok(exit_code.expect("a panic in a blocking task has ended the process, or the test"));
                }
                () = either(&mut interrupt, &mut terminate) => {
                    if stop.request() {
                        return Ok(EXIT_INTERRUPTED);
                    }
                }
            }
        }
    });
    // After a second signal `work` may still run: do not wait for it.
    runtime.shutdown_background();
    exit_code
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
