//! Runs phases of load: starts the worker threads, sends them phases, adds up what they record.
//!
//! Invariants:
//! 1. A phase begins for all threads at the same time, when all of them have opened their
//!    connections, and these are free unless it has no warm-up.
//! 2. A worker that fails or panics ends the run with an error: no thread waits for it.
//!
//! Threads: one event loop each, which keeps its connections and its source from phase to phase;
//! the caller's thread adds up. They exchange messages; nothing is shared while a phase runs.

mod descriptors;
mod tally;

pub use descriptors::raise_limit;

use crate::config::{Arrival, LoadConfig, Phase, Rate};
use crate::machine::{Machine, MachineWatch};
use crate::net::poller::Waker;
use crate::net::tls::TlsConnector;
use crate::op::OpNames;
use crate::outcome::Outcome;
use crate::record::Interval;
use crate::source::RequestSource;
use crate::target::Target;
use crate::worker::messages::{Command, Quota, Report, WorkerEvent};
use crate::worker::{self, Parts};
use kvant_base::tag::{self, Activity};
use kvant_base::wait::{self, WaitKind};
use kvant_base::{Error, ErrorKind, Result, duration};
use kvant_env::Env;
use kvant_env::host::procfs::ProcFs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use tally::Tally;

/// From the decision to begin to the beginning, in nanoseconds: enough for the message to reach all
/// threads.
const BEGIN_AFTER_NS: u64 = 2_000_000;
/// Cleared intervals that each worker has at the start.
const SPARE_INTERVALS: usize = 2;

/// Worker threads with their connections.
pub struct Load {
    config: Arc<LoadConfig>,
    tls: Option<TlsConnector>,
    ops: OpNames,
    env: Env,
    workers: Vec<WorkerHandle>,
    reports: Receiver<Report>,
    stopper: Stopper,
    failure: Option<Error>,
    before_beginning: Option<Box<dyn FnMut() + Send>>,
    before_measuring: Option<Box<dyn FnMut(u64) + Send>>,
    machine: Option<Machine>,
}

/// Ends the current phase and all further ones, from any thread.
#[derive(Clone)]
pub struct Stopper {
    is_stopped: Arc<AtomicBool>,
    reports: Sender<Report>,
}

struct WorkerHandle {
    commands: Sender<Command>,
    empty: Sender<Box<Interval>>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl Load {
    /// Raises the limit of descriptors and starts the threads. The first phase opens connections.
    /// `sources` has one for each thread.
    ///
    /// # Errors
    /// `Invalid` when the configuration contradicts itself (more threads than connections, no
    /// target), or the CA file has no certificate. `Io` when there are not enough descriptors, with
    /// the remedy, or a thread cannot be started.
    pub fn start(
        config: LoadConfig,
        sources: Vec<Box<dyn RequestSource>>,
        ops: OpNames,
        env: Env,
    ) -> Result<Load> {
        check(&config, sources.len())?;
        descriptors::raise_limit(config.connection_count, config.thread_count)?;
        let tls = match config.targets.iter().any(|target| target.is_tls) {
            true => Some(TlsConnector::new(config.ca_pem.as_deref())?),
            false => None,
        };
        let (report, reports) = mpsc::channel();
        let mut load = Load {
            config: Arc::new(config),
            tls,
            ops,
            env,
            workers: Vec::new(),
            reports,
            stopper: Stopper { is_stopped: Arc::default(), reports: report.clone() },
            failure: None,
            before_beginning: None,
            before_measuring: None,
            machine: None,
        };
        for (thread, source) in sources.into_iter().enumerate() {
            let worker = load.start_worker(thread, source, report.clone()).map_err(|error| {
                let message =
                    format!("cannot start thread {thread} of the load generator: {error}");
                Error::new(ErrorKind::Io, message)
            })?;
            load.workers.push(worker);
        }
        Ok(load)
    }

    fn start_worker(
        &self,
        thread: usize,
        source: Box<dyn RequestSource>,
        reports: Sender<Report>,
    ) -> io::Result<WorkerHandle> {
        let (commands, worker_commands) = mpsc::channel();
        let (empty, worker_empty) = mpsc::channel();
        for _ in 0..SPARE_INTERVALS {
            // The receiver is in this function.
            drop(empty.send(Box::default()));
        }
        let waker = Waker::new()?;
        let parts = Parts {
            thread,
            config: Arc::clone(&self.config),
            clock: Arc::clone(&self.env.clock),
            tls: self.tls.clone(),
            source,
            waker: waker.clone(),
            commands: worker_commands,
            reports,
            empty: worker_empty,
        };
        let thread = std::thread::Builder::new()
            .name(format!("load-{thread}"))
            .spawn(move || worker::run(parts))?;
        Ok(WorkerHandle { commands, empty, waker, thread })
    }

    /// Sets what [`Load::run`] calls when all connections are open and a phase is to begin. The
    /// phase begins when it returns: it may wait for another load.
    pub fn before_beginning(&mut self, call: Box<dyn FnMut() + Send>) {
        self.before_beginning = Some(call);
    }

    /// Sets what [`Load::run`] calls when the measured time begins, with that time by the monotonic
    /// clock, in nanoseconds.
    pub fn before_measuring(&mut self, call: Box<dyn FnMut(u64) + Send>) {
        self.before_measuring = Some(call);
    }

    /// Adds the CPU use of this machine, as `proc` reports it, to all outcomes. CPU time of the
    /// processes `nodes` is that of the server, which keeps its records there.
    pub fn watch_machine(&mut self, proc: ProcFs, nodes: &[u32]) {
        self.machine = Some(Machine::new(proc, &self.config.targets, nodes));
    }

    /// A handle that ends the run.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Runs one phase. `each_interval` receives the sum of all threads at the end of each interval
    /// ([`LoadConfig::interval`]), and returns `false` to end the phase early.
    ///
    /// # Errors
    /// `Invalid` for a ramp whose connections have plans of their own ([`Arrival::Wrk2`]), which
    /// hold one rate. The failure of a source: all further phases return the same error.
    pub fn run(
        &mut self,
        phase: &Phase,
        each_interval: &mut dyn FnMut(&Interval) -> bool,
    ) -> Result<Outcome> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let has_private_plans = self.config.arrival == Arrival::Wrk2 || self.config.wrk2_exact;
        if has_private_plans && matches!(phase.rate, Rate::Ramp { .. }) {
            return Err(Error::invalid(
                "a ramp needs uniform or random arrivals, not those of wrk2",
            ));
        }
        let outcome = self.run_phase(phase, each_interval);
        if let Err(error) = &outcome {
            self.failure = Some(error.clone());
            self.end_threads();
        }
        outcome
    }

    fn run_phase(
        &mut self,
        phase: &Phase,
        each_interval: &mut dyn FnMut(&Interval) -> bool,
    ) -> Result<Outcome> {
        let _tag = tag::enter(Activity::Load);
        let quota = Arc::new(Quota::new(phase.request_count_max));
        self.send_all(|| Command::Prepare(*phase, Arc::clone(&quota)));
        let mut tally = Tally::new(self.workers.len());
        let mut ready_count = 0;
        let mut start_wall_ms = self.env.clock.wall_ms();
        let mut is_cut_short = self.stopper.is_stopped();
        if is_cut_short {
            self.end_phase();
        }
        let mut measure_from_ns = None;
        let mut measure_start_ns = None;
        let mut watch = MachineWatch::new(self.machine.as_ref());
        while !tally.has_ended() {
            let Some(Report { thread, event }) = self.next_report(measure_from_ns)? else {
                let from_ns = measure_from_ns.take();
                measure_start_ns = from_ns.or(measure_start_ns);
                watch.begin(self.env.clock.monotonic_ns());
                if let (Some(call), Some(from_ns)) = (&mut self.before_measuring, from_ns) {
                    call(from_ns);
                }
                continue;
            };
            match event {
                WorkerEvent::Ready => {
                    ready_count += 1;
                    if ready_count == self.workers.len() {
                        if let Some(call) = &mut self.before_beginning {
                            call();
                        }
                        let now_ns = self.env.clock.monotonic_ns();
                        self.send_all(|| Command::Begin { begin_ns: now_ns + BEGIN_AFTER_NS });
                        let until_measured_ns =
                            duration::ns(phase.warmup).saturating_add(BEGIN_AFTER_NS);
                        measure_from_ns = Some(now_ns.saturating_add(until_measured_ns));
                        start_wall_ms = self.env.clock.wall_ms() + until_measured_ns / 1_000_000;
                    }
                }
                WorkerEvent::Interval(interval) => {
                    let cleared = tally.add(thread, interval);
                    // A worker that is gone needs no interval.
                    drop(self.workers[thread].empty.send(cleared));
                }
                WorkerEvent::Ended(end) => tally.end(thread, *end),
                WorkerEvent::StopRequested => {
                    is_cut_short = true;
                    self.end_phase();
                }
                WorkerEvent::Failed(error) => return Err(error.unwrap_or_else(panicked)),
            }
            let (wants_more, second_count) = tally.complete_intervals(each_interval);
            if second_count > 0 {
                tally.set_machine_of_last_second(watch.lap(self.env.clock.monotonic_ns()));
            }
            if !wants_more && !is_cut_short && !tally.has_ended() {
                is_cut_short = true;
                self.end_phase();
            }
        }
        let mut outcome = tally.finish(phase, start_wall_ms, self.ops.all(), is_cut_short);
        outcome.machine = watch.total();
        outcome.measure_start_ns = measure_start_ns;
        Ok(outcome)
    }

    /// The next report, or `None` at `until_ns`.
    fn next_report(&self, until_ns: Option<u64>) -> Result<Option<Report>> {
        let _waiting = wait::begin(WaitKind::Idle, "load_reports");
        let Some(until_ns) = until_ns else {
            return self.reports.recv().map(Some).map_err(|_| panicked());
        };
        let time_max = Duration::from_nanos(until_ns.saturating_sub(self.env.clock.monotonic_ns()));
        match self.reports.recv_timeout(time_max) {
            Ok(report) => Ok(Some(report)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(panicked()),
        }
    }

    fn send_all(&self, command: impl Fn() -> Command) {
        for worker in &self.workers {
            // A worker that is gone has reported why.
            drop(worker.commands.send(command()));
            worker.waker.wake();
        }
    }

    fn end_phase(&self) {
        let end_ns = self.env.clock.monotonic_ns();
        self.send_all(|| Command::End { end_ns });
    }

    /// Closes all connections and ends the threads.
    pub fn stop(mut self) {
        self.end_threads();
    }

    fn end_threads(&mut self) {
        let end = |WorkerHandle { commands, waker, thread, .. }| {
            drop(commands);
            waker.wake();
            thread
        };
        let threads: Vec<JoinHandle<()>> = self.workers.drain(..).map(end).collect();
        for thread in threads {
            match thread.join() {
                // The worker has reported its panic.
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end_threads();
    }
}

impl Stopper {
    /// Ends the current phase; further ones end at once.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // Without a receiver there is no run to stop.
        drop(self.reports.send(Report { thread: 0, event: WorkerEvent::StopRequested }));
    }

    /// Whether [`Stopper::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

fn check(config: &LoadConfig, source_count: usize) -> Result<()> {
    let (threads, connections) = (config.thread_count, config.connection_count);
    let has_address = |target: &Target| !target.addresses.is_empty();
    if config.targets.is_empty() || !config.targets.iter().all(has_address) {
        return Err(Error::invalid("a run needs at least one target, and each target an address"));
    }
    let interval_ns = config.interval.as_nanos();
    if interval_ns == 0 || 1_000_000_000 % interval_ns != 0 {
        let message = format!("intervals of {:?} do not divide a second", config.interval);
        return Err(Error::invalid(message));
    }
    if threads == 0 || threads > connections {
        let message = format!(
            "{threads} threads cannot share {connections} connections: each needs at least one"
        );
        return Err(Error::invalid(message));
    }
    if source_count != threads {
        let message =
            format!("{threads} threads need as many sources of requests, not {source_count}");
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn panicked() -> Error {
    Error::new(ErrorKind::Io, "a thread of the load generator panicked")
}
