//! SIGINT and SIGTERM: the first ends the load early, so that what was measured is printed; the
//! second ends the process.
//!
//! Threads: the main thread waits here for signals; the command works on another.

use kvant_base::lock::NamedMutex;
use kvant_load::Stopper;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;

/// What a shell reports for a process that SIGINT ended.
const EXIT_INTERRUPTED: u8 = 130;

/// Whether a signal has come, and the load that it ends.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<Shared>);

struct Shared {
    is_asked: AtomicBool,
    stopper: NamedMutex<Option<Stopper>>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared { is_asked: AtomicBool::new(false), stopper: NamedMutex::new("load_stopper", None) }
    }
}

impl Stop {
    /// Whether the load is to end early.
    pub(super) fn is_asked(&self) -> bool {
        self.0.is_asked.load(Ordering::SeqCst)
    }

    /// Ends this load when a signal comes, or at once if one has come.
    pub(super) fn attach(&self, stopper: Stopper) {
        *self.0.stopper.lock() = Some(stopper);
        if self.is_asked() {
            self.end();
        }
    }

    /// A signal has come; returns whether it is not the first.
    fn ask(&self) -> bool {
        let is_second = self.0.is_asked.swap(true, Ordering::SeqCst);
        self.end();
        is_second
    }

    fn end(&self) {
        if let Some(stopper) = self.0.stopper.lock().as_ref() {
            stopper.stop();
        }
    }
}

/// Runs `work` on a thread of its own. The result is its exit code, or that of a second signal.
///
/// # Errors
/// The system gives no signal handler or thread.
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
                    if stop.ask() {
                        return Ok(EXIT_INTERRUPTED);
                    }
                }
            }
        }
    });
    // What a second signal interrupted is not waited for.
    runtime.shutdown_background();
    exit_code
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
