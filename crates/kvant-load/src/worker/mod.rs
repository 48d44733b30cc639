//! A worker: an event loop with its connections, its source of requests and its recorder.
//!
//! A turn of the loop crosses the boundaries of seconds, expires deadlines, fires timers, sends due
//! requests, waits for sockets or for the next time, and handles events.
//!
//! Invariants:
//! 1. A request causes no allocation, takes no lock and changes no registration.
//! 2. Between two polls at most [`SENDS_PER_TURN`] batches are sent and [`EVENTS_PER_WAIT`] events
//!    handled, so that events are noticed soon: the generator's delay must not look like the
//!    server's.
//! 3. The clock is read after each poll, after each read, and before each write.
//! 4. A deadline expires only after a poll of all sockets later than the deadline: a response that
//!    waits in a socket while this thread has no CPU is not a timeout.
//! 5. Failed connections are reopened after a back-off: no failure causes a busy loop.
//!
//! Threads: a worker owns its thread and everything in it; it exchanges messages with the
//! coordinator.

mod connection;
pub(crate) mod messages;
mod open;
mod pace;
mod phase;
mod queue;
mod receive;
mod recorder;
mod send;
mod stage;
mod timers;

use crate::config::LoadConfig;
use crate::net::poller::{EVENTS_PER_WAIT, Poller, Waker};
use crate::net::tls::TlsConnector;
use crate::record::Interval;
use crate::source::RequestSource;
use crate::target::Address;
use connection::Connection;
use kvant_base::tag::{self, Activity};
use kvant_base::wait::{self, WaitKind};
use kvant_base::{Error, ErrorKind, Result, duration};
use kvant_env::Clock;
use messages::{Command, Report, WorkerEvent};
use queue::{Links, Queue};
use recorder::{CallSampler, Recorder};
use stage::{PhaseRun, Stage};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use timers::Timers;

const SENDS_PER_TURN: usize = 32;
/// Connections being opened at once, over all threads: fewer than a listener's backlog usually
/// holds.
const OPENING_MAX: usize = 64;
const READ_BYTES: usize = 64 << 10;
/// Longest wait, in nanoseconds: beyond any phase's next boundary, and valid for the kernel.
const WAIT_NS_MAX: u64 = 3_600_000_000_000;

/// What the coordinator gives to a worker.
pub(crate) struct Parts {
    pub(crate) thread: usize,
    pub(crate) config: Arc<LoadConfig>,
    pub(crate) clock: Arc<dyn Clock>,
    /// For targets with TLS.
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) source: Box<dyn RequestSource>,
    /// Ends waits of the worker, so that it looks for commands.
    pub(crate) waker: Waker,
    pub(crate) commands: Receiver<Command>,
    pub(crate) reports: Sender<Report>,
    /// Cleared intervals.
    pub(crate) empty: Receiver<Box<Interval>>,
}

/// Runs phases until the coordinator closes the channel or something fails.
pub(crate) fn run(parts: Parts) {
    let mut exit = ExitReport { thread: parts.thread, reports: parts.reports.clone(), error: None };
    let _tag = tag::enter(Activity::Load);
    Poller::sharpen_timers();
    exit.error = Worker::new(parts).and_then(|mut worker| worker.serve()).err();
}

struct Worker {
    thread: usize,
    config: Arc<LoadConfig>,
    clock: Arc<dyn Clock>,
    source: Box<dyn RequestSource>,
    source_observes: bool,
    source_follows: bool,
    source_delays: bool,
    /// The address of all connections, if the source sets it.
    address: Option<Address>,
    commands: Receiver<Command>,
    reports: Sender<Report>,
    poller: Poller,
    /// The last reading of the clock.
    now_ns: u64,
    /// The clock after the last poll.
    turn_ns: u64,
    poll_progress: PollProgress,
    timeout_ns: u64,
    connections: Vec<Connection>,
    links: Links,
    free: Queue,
    /// In the order of their writes, and so of their deadlines.
    busy: Queue,
    /// In the order of their attempts, and so of their deadlines.
    opening: Queue,
    /// Closed connections whose back-off is over.
    to_open: VecDeque<usize>,
    opening_max: usize,
    /// By target: index of the address that last worked.
    addresses: Vec<usize>,
    tls: Option<TlsConnector>,
    timers: Timers,
    /// Connections whose sockets are not drained.
    unread: VecDeque<usize>,
    buffer: Vec<u8>,
    recorder: Recorder,
    next_calls: CallSampler,
    show_calls: CallSampler,
    phase_number: u64,
    run: PhaseRun,
}

impl Worker {
    fn new(parts: Parts) -> Result<Worker> {
        let Parts { thread, config, clock, tls, source, waker, commands, reports, empty } = parts;
        let collects = source.observes() || source.follows();
        let connections: Vec<Connection> = (thread..config.connection_count)
            .step_by(config.thread_count)
            .map(|index| Connection::new(index % config.targets.len(), collects))
            .collect();
        let count = connections.len();
        let poller =
            Poller::new(&waker).map_err(|error| failure("make an epoll instance", &error))?;
        Ok(Worker {
            thread,
            source_observes: source.observes(),
            source_follows: source.follows(),
            source_delays: source.delays(),
            address: source.address(),
            source,
            commands,
            reports,
            poller,
            now_ns: 0,
            turn_ns: 0,
            poll_progress: PollProgress::default(),
            timeout_ns: duration::ns(config.timeout),
            connections,
            links: Links::new(count),
            free: Queue::new(),
            busy: Queue::new(),
            opening: Queue::new(),
            to_open: (0..count).collect(),
            opening_max: (OPENING_MAX / config.thread_count).max(1),
            addresses: vec![0; config.targets.len()],
            tls,
            timers: Timers::new(count),
            unread: VecDeque::new(),
            buffer: vec![0; READ_BYTES],
            recorder: Recorder::new(empty, config.ok_statuses.clone()),
            next_calls: CallSampler::default(),
            show_calls: CallSampler::default(),
            phase_number: 0,
            run: PhaseRun::default(),
            config,
            clock,
        })
    }

    fn serve(&mut self) -> Result<()> {
        loop {
            let command = if self.run.stage == Stage::Idle {
                let _waiting = wait::begin(WaitKind::Idle, "load_orders");
                self.commands.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                self.commands.try_recv()
            };
            match command {
                Ok(command) => self.handle_command(command)?,
                Err(TryRecvError::Empty) => self.run_loop()?,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Runs the loop until the phase ends or the waker ends a wait.
    fn run_loop(&mut self) -> Result<()> {
        loop {
            self.cross_boundaries();
            self.expire()?;
            self.fire_timers();
            self.open_some();
            self.dispatch(SENDS_PER_TURN)?;
            self.check_stage();
            if self.run.stage == Stage::Idle {
                return Ok(());
            }
            let timeout_ns = self.wait_ns();
            self.poll_progress.begin(self.now_ns, self.connections.len());
            let count = self
                .poller
                .wait(timeout_ns)
                .map_err(|error| failure("wait for sockets", &error))?;
            self.read_clock();
            self.turn_ns = self.now_ns;
            self.run.has_seen_all |= count < EVENTS_PER_WAIT;
            let mut is_woken = false;
            for event in 0..count {
                match self.poller.event(event) {
                    Some(event) => self.handle_event(event)?,
                    None => is_woken = true,
                }
            }
            self.receive_unread()?;
            self.poll_progress.end(count);
            if is_woken {
                return Ok(());
            }
        }
    }

    #[inline]
    fn read_clock(&mut self) -> u64 {
        self.now_ns = self.clock.monotonic_ns();
        self.now_ns
    }

    /// How long the loop may sleep; 0 to poll.
    fn wait_ns(&mut self) -> u64 {
        let never_sleeps = self.run.spin_ns == u64::MAX && self.run.stage == Stage::Running;
        if never_sleeps || !self.unread.is_empty() || !self.run.has_seen_all {
            return 0;
        }
        // Planned times are busy-polled at the end, as waking up takes longer than a poll.
        let send_ns = self.next_send_ns().min(self.next_waiting_ns());
        let until_ns = send_ns.saturating_sub(self.run.spin_ns).min(self.next_other_ns());
        until_ns.saturating_sub(self.now_ns).min(WAIT_NS_MAX)
    }

    fn report(&self, event: WorkerEvent) {
        // If the coordinator is gone, the channel of commands is closed too.
        drop(self.reports.send(Report { thread: self.thread, event }));
    }
}

/// Until when the events of all sockets have been handled.
#[derive(Debug, Default)]
struct PollProgress {
    /// Events before this time are handled.
    seen_ns: u64,
    seeing_ns: u64,
    /// After this many further polls, even if each is full, every socket has had its turn.
    polls_left: usize,
}

impl PollProgress {
    fn begin(&mut self, now_ns: u64, connection_count: usize) {
        if self.polls_left == 0 {
            self.seeing_ns = now_ns;
            self.polls_left = connection_count.div_ceil(EVENTS_PER_WAIT) + 1;
        }
    }

    fn end(&mut self, event_count: usize) {
        self.polls_left =
            if event_count < EVENTS_PER_WAIT { 0 } else { self.polls_left.saturating_sub(1) };
        if self.polls_left == 0 {
            self.seen_ns = self.seeing_ns;
        }
    }
}

/// Reports the end of a worker, including by a panic.
struct ExitReport {
    thread: usize,
    reports: Sender<Report>,
    error: Option<Error>,
}

impl Drop for ExitReport {
    fn drop(&mut self) {
        let event = WorkerEvent::Failed(self.error.take());
        drop(self.reports.send(Report { thread: self.thread, event }));
    }
}

fn failure(action: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {action}: {error}"))
}
