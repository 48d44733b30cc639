//! SIGTERM and SIGINT: the first ends a command's work early, the second ends the process.
//!
//! Threads: the main thread waits for signals, others do the work.

use kvant_base::lock::NamedMutex;
use std::io;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};

/// The exit code that shells report for a process that SIGINT terminated.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// The handlers of both signals.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// The first of two events.
pub(super) enum Event<T> {
    Signal(&'static str),
    Done(T),
}

impl Signals {
    /// Installs the handlers; the signals no longer end the process.
    pub(super) fn catch() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The name of the next signal.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// The next signal or the end of `work`.
    pub(super) async fn first_of<T>(&mut self, work: &mut JoinHandle<T>) -> Event<T> {
        tokio::select! {
            name = self.next() => Event::Signal(name),
            done = work => {
                Event::Done(done.expect("a panic in a blocking task has ended the process, or the test"))
            }
        }
    }
}

/// A request to end the work early.
#[derive(Clone)]
pub(super) struct Stop(Arc<NamedMutex<StopState>>);

#[derive(Default)]
struct StopState {
    is_requested: bool,
    end_work: Option<Box<dyn Fn() + Send>>,
}

impl StopState {
    fn apply(&self) {
        if let Some(end_work) = self.end_work.as_ref().filter(|_| self.is_requested) {
            end_work();
        }
    }
}

impl Stop {
    pub(super) fn is_requested(&self) -> bool {
        self.0.lock().is_requested
    }

    /// Calls `end_work` on the next signal, or at once if one was received.
    pub(super) fn on_request(&self, end_work: impl Fn() + Send + 'static) {
        let mut state = self.0.lock();
        state.end_work = Some(Box::new(end_work));
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

/// Runs `work` on its own thread; returns its result, or `None` after a second signal. Fails if the
/// system provides no signal handler or thread.
pub(super) fn run<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let stop = Stop(Arc::new(NamedMutex::new("stop", StopState::default())));
        let mut working = spawn_blocking({
            let stop = stop.clone();
            move || work(&stop)
        });
        loop {
            match signals.first_of(&mut working).await {
                Event::Done(result) => return Ok(Some(result)),
                Event::Signal(_) if stop.request() => return Ok(None),
                Event::Signal(_) => {}
            }
        }
    });
    // After a second signal `work` may still run: do not wait for it.
    runtime.shutdown_background();
    result
}
