//! Makes suspects happen beside a load, at the moments that [`moments`] draws.
//!
//! Invariants:
//! 1. A moment is fixed before anything is asked of the subject, so that it does not depend on how
//!    fast the subject responds.
//! 2. The next moment comes after the window of the last one, and after the end of what was made to
//!    happen: where that is not awaited, there is none.
//! 3. A subject that does not respond delays the end of an attempt by no more than
//!    [`RESPONSE_WAIT_MAX`].
//!
//! Threads: one makes them happen; a neighbour's load has one on each CPU of the subject.

use super::context::Context;
use super::http::{Response, Server, read_response};
use super::subject::Running;
use crate::comparison::moments::{Moment, moments};
use crate::record::{InterventionFacts, Suspect, Trial};
use kvant_base::{Error, Result};
use kvant_env::Clock;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for the end of what was made to happen.
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A thread that makes suspects happen. Dropping it ends it.
pub(super) struct Intervener {
    /// A message begins; when all senders are gone, it is over.
    begin: Sender<()>,
    thread: JoinHandle<Vec<Trial>>,
}

/// Begins the moments, from any thread.
pub(super) struct Trigger(Sender<()>);

impl Trigger {
    pub(super) fn begin(&self) {
        match self.0.send(()) {
            // A thread that has ended has nothing to begin.
            Ok(()) | Err(_) => {}
        }
    }
}

impl Intervener {
    /// An intervener for a repeat, which waits for its trigger; `None` if the plan makes nothing
    /// happen, or single requests to the subject are not possible.
    ///
    /// # Errors
    /// `Io` if its thread cannot be started.
    pub(super) fn start(
        context: &Context<'_>,
        running: &Running,
        repeat: u32,
    ) -> Result<Option<Intervener>> {
        let (Some(facts), Some(server)) = (&context.plan.intervention, &running.server) else {
            return Ok(None);
        };
        let gap_ns = facts.gap_min_ns..facts.gap_max_ns;
        let planned = moments(context.plan.seed, repeat, facts.suspects.len(), gap_ns);
        let maker = Maker {
            facts: facts.clone(),
            server: server.clone(),
            server_cpus: context.server_cpus,
            clock: Arc::clone(&context.env.clock),
            response_wait_max: RESPONSE_WAIT_MAX,
        };
        let (begin, begun) = channel();
        let work = move || maker.run(&planned, &begun);
        let thread = std::thread::Builder::new().name("lab-intervener".to_owned()).spawn(work);
        let failed = |error| Error::io("start", Path::new("lab-intervener"), error);
        Ok(Some(Intervener { begin, thread: thread.map_err(failed)? }))
    }

    pub(super) fn trigger(&self) -> Trigger {
        Trigger(self.begin.clone())
    }

    /// Ends it; returns the moments whose windows are over.
    pub(super) fn finish(self) -> Vec<Trial> {
        drop(self.begin);
        // A panic has been reported.
        self.thread.join().unwrap_or_default()
    }
}

/// What was made to happen.
#[derive(PartialEq)]
enum Made {
    Over,
    /// It takes longer than the wait for its end.
    GoesOn,
}

struct Maker {
    facts: InterventionFacts,
    server: Server,
    server_cpus: CpuSet,
    clock: Arc<dyn Clock>,
    response_wait_max: Duration,
}

impl Maker {
    fn run(&self, planned: &[Moment], begun: &Receiver<()>) -> Vec<Trial> {
        let mut trials = Vec::new();
        if begun.recv().is_err() {
            return trials;
        }
        let window = Duration::from_nanos(self.facts.window_ns);
        for moment in planned {
            if !wait(begun, Duration::from_nanos(moment.gap_ns)) {
                return trials;
            }
            let suspect = self.facts.suspects[moment.suspect];
            let (at, at_ns) = (Instant::now(), self.clock.monotonic_ns());
            let is_treated = moment.is_treated;
            let made = if is_treated { self.make(suspect, at_ns) } else { Ok(Made::Over) };
            let end_ns = if is_treated { self.clock.monotonic_ns() } else { at_ns };
            let goes_on = wait(begun, window.saturating_sub(at.elapsed()));
            // The phase may have ended while what was made to happen went on, after the window.
            if at.elapsed() >= window {
                let problem = made.as_ref().err().cloned();
                trials.push(Trial { suspect, is_treated, at_ns, end_ns, problem });
            }
            if !goes_on || made == Ok(Made::GoesOn) {
                return trials;
            }
        }
        trials
    }

    /// Makes a suspect happen, and waits until it is over, but not for longer than for a response.
    fn make(&self, suspect: Suspect, at_ns: u64) -> std::result::Result<Made, String> {
        let window_ms = self.facts.window_ns / 1_000_000;
        let path = match suspect {
            Suspect::Flush => "/v0/admin/flush".to_owned(),
            Suspect::Compaction => "/v0/admin/compact".to_owned(),
            Suspect::Checkpoint => format!("/v0/admin/checkpoint?dir=intervention-{at_ns}"),
            Suspect::Pause => "/v0/admin/pause?for=200ms".to_owned(),
            Suspect::Profiler => {
                format!("/v0/profile?format=kprof&event=cpu,alloc,lock&duration={window_ms}ms")
            }
            Suspect::Neighbour => {
                return self.use_cpus().map(|()| Made::Over).map_err(|error| error.to_string());
            }
        };
        let sent = self.server.connect(self.response_wait_max).and_then(|mut stream| {
            self.server.send(&mut stream, "POST", &path)?;
            stream.set_read_timeout(self.response_wait_max)?;
            Ok(stream)
        });
        let mut stream = sent.map_err(|error| error.to_string())?;
        match read_response(&mut stream) {
            Ok(Response { status: 200..=299, .. }) => Ok(Made::Over),
            Ok(response) => Err(response.refusal()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(Made::GoesOn)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Uses all CPUs of the subject for the length of a window.
    fn use_cpus(&self) -> std::io::Result<()> {
        let until = Instant::now() + Duration::from_nanos(self.facts.window_ns);
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| self.server_cpus.is_set(*cpu));
        let spin = |cpu: usize| {
            move || -> std::io::Result<()> {
                let mut only = CpuSet::new();
                only.set(cpu);
                sched_setaffinity(None, &only)?;
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                Ok(())
            }
        };
        let start =
            |cpu| std::thread::Builder::new().name("lab-neighbour".to_owned()).spawn(spin(cpu));
        let threads: Vec<_> = cpus.map(start).collect();
        let panicked = |_| Err(std::io::Error::other("a thread panicked"));
        threads.into_iter().try_for_each(|thread| thread?.join().unwrap_or_else(panicked))
    }
}

/// Waits; returns whether it is not over.
fn wait(begun: &Receiver<()>, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        match begun.recv_timeout(until.saturating_duration_since(Instant::now())) {
            // Another phase begins.
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

#[cfg(test)]
mod tests;
