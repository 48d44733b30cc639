//! SIGTERM and SIGINT, of some commands SIGHUP and SIGQUIT too: the first ends a command's work
//! early, the second ends the process.
//!
//! Threads: the main thread waits for signals, others do the work.

use kvant_base::lock::NamedMutex;
use kvant_env::host;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};

/// The exit code that shells report for a process that SIGINT terminated.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// Signals that end every command.
const TERMINATING: [(&str, SignalKind); 2] =
    [("SIGTERM", SignalKind::terminate()), ("SIGINT", SignalKind::interrupt())];
/// Signals of a terminal that end commands with processes to clean up.
const OF_TERMINAL: [(&str, SignalKind); 2] =
    [("SIGHUP", SignalKind::hangup()), ("SIGQUIT", SignalKind::quit())];

/// The handlers of the signals.
pub(super) struct Signals(Vec<(&'static str, Signal)>);

/// The first of two events.
pub(super) enum Event<T> {
    Signal(&'static str),
    Done(T),
}

impl Signals {
    /// Installs the handlers of SIGTERM and SIGINT; the signals no longer end the process.
    pub(super) fn catch() -> io::Result<Signals> {
        Signals::of(&TERMINATING)
    }

    /// The same with those of SIGHUP and SIGQUIT. SIGHUP stays ignored if it is, as by `nohup`.
    fn catch_all() -> io::Result<Signals> {
        let of_terminal = OF_TERMINAL.into_iter().filter(|(_, kind)| !is_ignored(*kind));
        let all: Vec<_> = TERMINATING.into_iter().chain(of_terminal).collect();
        Signals::of(&all)
    }

    fn of(kinds: &[(&'static str, SignalKind)]) -> io::Result<Signals> {
        let handler = |(name, kind): &(&'static str, SignalKind)| Ok((*name, signal(*kind)?));
        kinds.iter().map(handler).collect::<io::Result<_>>().map(Signals)
    }

    /// The name of the next signal.
    pub(super) async fn next(&mut self) -> &'static str {
        poll_fn(|context| {
            let mut all = self.0.iter_mut();
            let received = all.find_map(|(name, signal)| {
                signal.poll_recv(context).is_ready().then_some(Poll::Ready(*name))
            });
            received.unwrap_or(Poll::Pending)
        })
        .await
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
    run_until(Signals::catch, work)
}

/// As [`run`], with SIGHUP and SIGQUIT as SIGTERM: `work` has processes that a closed terminal
/// would leave.
pub(super) fn run_until_hangup<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> io::Result<Option<T>> {
    run_until(Signals::catch_all, work)
}

fn run_until<T: Send + 'static>(
    catch: impl FnOnce() -> io::Result<Signals>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let mut signals = catch()?;
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

/// Whether this process was started with a signal ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = host::read_text(Path::new("/proc/self/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}
