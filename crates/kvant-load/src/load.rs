//! Runs phases of load: starts the worker threads, hands them phases, adds up what they record.
//!
//! Invariants:
//! 1. A phase begins for all threads at the same moment, when all of them have opened their
//!    connections.
//! 2. A worker that fails or panics ends the run with an error: nobody waits for it.
//!
//! Threads: one event loop each, which keeps its connections and its source from phase to phase;
//! the caller's thread adds up. They exchange messages; nothing is shared while a phase runs.

mod descriptors;
mod tally;

use crate::config::{LoadConfig, Phase};
use crate::machine::{Machine, Watch};
use crate::net::poller::Waker;
use crate::net::tls::TlsConnector;
use crate::op::OpNames;
use crate::outcome::Outcome;
use crate::record::Interval;
use crate::source::RequestSource;
use crate::worker::messages::{News, Order, Quota, Report};
use crate::worker::{self, Parts};
use kvant_base::tag::{self, Activity};
use kvant_base::wait::{self, WaitKind};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Env;
use kvant_env::host::procfs::ProcFs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use tally::Tally;

/// From the decision to begin to the begin, in nanoseconds: enough for all threads to hear of it.
const BEGIN_AFTER_NS: u64 = 2_000_000;
/// Intervals that each worker has in stock.
const INTERVALS_IN_STOCK: usize = 2;

/// Worker threads with open connections, ready for phases.
pub struct Load {
    config: Arc<LoadConfig>,
    tls: Option<TlsConnector>,
    ops: OpNames,
    env: Env,
    workers: Vec<Handle>,
    reports: Receiver<Report>,
    stopper: Stopper,
    failure: Option<Error>,
    before_measuring: Option<Box<dyn FnMut() + Send>>,
    machine: Option<Machine>,
}

/// Ends the phase that is running, and all that would follow, from any thread.
#[derive(Clone)]
pub struct Stopper {
    is_stopped: Arc<AtomicBool>,
    reports: Sender<Report>,
}

struct Handle {
    /// `None` when the worker has been told to go.
    orders: Option<Sender<Order>>,
    empty: Sender<Box<Interval>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// Raises the descriptor limit, starts the threads. Connections are opened when the first phase
    /// needs them. `sources` has one for each thread.
    ///
    /// # Errors
    /// `Invalid` when the configuration contradicts itself (more threads than connections, no
    /// target). `Io` when there are not enough descriptors, with what to do about it, or a thread
    /// cannot be started. `Invalid` also for a file of certificates that has none.
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
        let config = Arc::new(config);
        let (report, reports) = mpsc::channel();
        let stopper = Stopper { is_stopped: Arc::default(), reports: report.clone() };
        let mut load = Load {
            config,
            tls,
            ops,
            env,
            workers: Vec::new(),
            reports,
            stopper,
            failure: None,
            before_measuring: None,
            machine: None,
        };
        for (thread, source) in sources.into_iter().enumerate() {
            let worker = load.start_worker(thread, source, report.clone());
            let worker = worker.map_err(|error| {
                Error::new(
                    ErrorKind::Io,
                    format!("cannot start thread {thread} of the load generator: {error}"),
                )
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
    ) -> io::Result<Handle> {
        let (orders, worker_orders) = mpsc::channel();
        let (empty, worker_empty) = mpsc::channel();
        for _ in 0..INTERVALS_IN_STOCK {
            // The receiver is in this function.
            drop(empty.send(Box::default()));
        }
        let waker = Waker::new()?;
        let parts = Parts {
            thread,
            waker: waker.clone(),
            config: Arc::clone(&self.config),
            clock: Arc::clone(&self.env.clock),
            tls: self.tls.clone(),
            source,
            orders: worker_orders,
            reports,
            empty: worker_empty,
        };
        let thread = std::thread::Builder::new()
            .name(format!("load-{thread}"))
            .spawn(move || worker::run(parts))?;
        Ok(Handle { orders: Some(orders), empty, waker, thread: Some(thread) })
    }

    /// Has `call` called by whoever runs a phase, when its measured time begins.
    pub fn before_measuring(&mut self, call: Box<dyn FnMut() + Send>) {
        self.before_measuring = Some(call);
    }

    /// Has outcomes say who used the CPUs of this machine, as `proc` has it.
    pub fn watch_machine(&mut self, proc: ProcFs) {
        self.machine = Some(Machine::new(proc, &self.config.targets));
    }

    /// Ends the phase that is running, and all that would follow, from any thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Runs one phase; returns when its time is over. `each_second` sees the interval of all
    /// threads added up, as it ends. Returning `false` from it ends the phase early.
    ///
    /// # Errors
    /// What a source reported. All later phases end with the same error.
    pub fn run(
        &mut self,
        phase: &Phase,
        each_second: &mut dyn FnMut(&Interval) -> bool,
    ) -> Result<Outcome> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let outcome = self.run_phase(phase, each_second);
        if let Err(error) = &outcome {
            self.failure = Some(error.clone());
            self.hang_up();
        }
        outcome
    }

    fn run_phase(
        &mut self,
        phase: &Phase,
        each_second: &mut dyn FnMut(&Interval) -> bool,
    ) -> Result<Outcome> {
        let _tag = tag::enter(Activity::Load);
        let quota = Arc::new(Quota::new(phase.request_count_max));
        self.order(|| Order::Prepare(*phase, Arc::clone(&quota)));
        let mut tally = Tally::new(self.workers.len());
        let mut ready_count = 0;
        let mut start_wall_ms = self.env.clock.wall_ms();
        let mut is_cut_short = self.stopper.is_stopped();
        if is_cut_short {
            self.order_end();
        }
        let mut measure_from_ns = None;
        let mut watch = self.machine.as_ref().map(Watch::new);
        while !tally.has_ended() {
            let Some(report) = self.next_report(measure_from_ns)? else {
                measure_from_ns = None;
                if let Some(watch) = &mut watch {
                    watch.begin(self.env.clock.monotonic_ns());
                }
                if let Some(call) = &mut self.before_measuring {
                    call();
                }
                continue;
            };
            let thread = report.thread;
            match report.news {
                News::Ready => {
                    ready_count += 1;
                    if ready_count == self.workers.len() {
                        let begin_ns = self.env.clock.monotonic_ns() + BEGIN_AFTER_NS;
                        self.order(|| Order::Begin { begin_ns });
                        let warmup_ms = u64::try_from(phase.warmup.as_millis()).unwrap_or(u64::MAX);
                        measure_from_ns =
                            Some(begin_ns.saturating_add(warmup_ms.saturating_mul(1_000_000)));
                        let begin_wall_ms = self.env.clock.wall_ms() + BEGIN_AFTER_NS / 1_000_000;
                        start_wall_ms = begin_wall_ms.saturating_add(warmup_ms);
                    }
                }
                News::Second(second) => {
                    let emptied = tally.add(thread, second);
                    // A worker that is gone needs no box.
                    drop(self.workers[thread].empty.send(emptied));
                }
                News::Ended(ended) => tally.end(thread, *ended),
                News::StopAsked => {
                    is_cut_short = true;
                    self.order_end();
                }
                News::Failed(error) => return Err(error.unwrap_or_else(panicked)),
            }
            let second_count = tally.second_count();
            let wants_more = tally.complete_seconds(each_second);
            if tally.second_count() > second_count
                && let Some(watch) = &mut watch
            {
                tally.set_machine_of_last_second(watch.lap(self.env.clock.monotonic_ns()));
            }
            if !wants_more && !is_cut_short && !tally.has_ended() {
                is_cut_short = true;
                self.order_end();
            }
        }
        let mut outcome = tally.finish(phase, start_wall_ms, self.ops.all(), is_cut_short);
        outcome.machine = watch.and_then(|watch| watch.whole());
        Ok(outcome)
    }

    /// What a worker says next; `None` when this moment comes before it.
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

    fn order(&self, order: impl Fn() -> Order) {
        for worker in &self.workers {
            if let Some(orders) = &worker.orders {
                // A worker that is gone has reported why.
                drop(orders.send(order()));
                worker.waker.wake();
            }
        }
    }

    fn order_end(&self) {
        let end_ns = self.env.clock.monotonic_ns();
        self.order(|| Order::End { end_ns });
    }

    /// Closes all connections and ends the threads.
    pub fn stop(mut self) {
        self.hang_up();
    }

    fn hang_up(&mut self) {
        for worker in &mut self.workers {
            worker.orders = None;
            worker.waker.wake();
        }
        for worker in &mut self.workers {
            match worker.thread.take().map(JoinHandle::join) {
                // Of a panic the worker's last message has told.
                None | Some(Ok(()) | Err(_)) => {}
            }
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Stopper {
    /// Ends the phase that is running now; later ones end at once.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // Without anyone to hear it there is nothing to stop.
        drop(self.reports.send(Report { thread: 0, news: News::StopAsked }));
    }

    /// Whether [`Stopper::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

fn check(config: &LoadConfig, source_count: usize) -> Result<()> {
    let (threads, connections) = (config.thread_count, config.connection_count);
    if config.targets.iter().any(|target| target.addresses.is_empty()) || config.targets.is_empty()
    {
        return Err(Error::invalid("a run needs at least one target, and each target an address"));
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
