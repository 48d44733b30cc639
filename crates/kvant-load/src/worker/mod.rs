//! One event loop: its connections, its source of requests, its record.
//!
//! A turn of the loop: cross the boundary of a second, let deadlines pass, fire timers, send what
//! is due, wait for sockets or for the next moment, handle what the sockets have.
//!
//! Invariants:
//! 1. Nothing is allocated, locked or registered for a request.
//! 2. Between two looks at the sockets at most [`SENDS_PER_TURN`] batches are sent and
//!    [`EVENTS_PER_WAIT`] sockets handled, so that what happened is noticed soon: the generator's
//!    own delay must not look like the server's.
//! 3. The clock is read after each look at the sockets, after each read, and before each write.
//! 4. A deadline has passed only when all sockets were looked at after it: an answer that waits in
//!    one while this thread has no core is no timeout.
//! 5. Connections that fail are opened again after a back-off: no failure makes the loop spin.
//!
//! Threads: a worker owns its thread and everything in it; it hears and answers the coordinator
//! through channels.

mod connection;
pub(crate) mod messages;
mod open;
mod pace;
mod phase;
mod queue;
mod receive;
mod recorder;
mod send;
mod timers;

use crate::config::LoadConfig;
use crate::net::poller::{EVENTS_PER_WAIT, Patience, Poller, Waker};
use crate::net::tls::TlsConnector;
use crate::record::Interval;
use crate::source::RequestSource;
use crate::target::Address;
use connection::Connection;
use kvant_base::tag::{self, Activity};
use kvant_base::wait::{self, WaitKind};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Clock;
use messages::{News, Order, Report};
use phase::{Run, Stage};
use queue::{Links, Queue};
use recorder::Recorder;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use timers::Timers;

/// Batches sent for moments that have come, between two looks at the sockets.
const SENDS_PER_TURN: usize = 32;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Calibration of `wrk2_exact`: so long after the start.
const CALIBRATION_NS: u64 = 10_000_000_000;
/// With `wrk2_exact`, connections start so long after each other.
const STAGGER_NS: u64 = 5_000_000;

/// What a worker is given.
pub(crate) struct Parts {
    pub(crate) thread: usize,
    pub(crate) config: Arc<LoadConfig>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where a target speaks TLS.
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) source: Box<dyn RequestSource>,
    /// Ends waits of the worker, so that it looks for orders.
    pub(crate) waker: Waker,
    pub(crate) orders: Receiver<Order>,
    pub(crate) reports: Sender<Report>,
    /// Empty intervals, to be filled.
    pub(crate) empty: Receiver<Box<Interval>>,
}

/// Runs phases until the coordinator hangs up or something fails.
pub(crate) fn run(parts: Parts) {
    let gone = Gone { thread: parts.thread, reports: parts.reports.clone(), error: None };
    let _tag = tag::enter(Activity::Load);
    Poller::sharpen_timers();
    let served = match Worker::new(parts) {
        Ok(mut worker) => worker.serve(),
        Err(error) => Err(failure("make an epoll instance", error)),
    };
    gone.tell(served.err());
}

/// An event loop.
struct Worker {
    thread: usize,
    config: Arc<LoadConfig>,
    clock: Arc<dyn Clock>,
    source: Box<dyn RequestSource>,
    source_observes: bool,
    source_follows: bool,
    source_delays: bool,
    /// Where all connections go, when the source says so.
    address: Option<Address>,
    orders: Receiver<Order>,
    reports: Sender<Report>,
    poller: Poller,
    /// The clock, as it was last read.
    now_ns: u64,
    /// The clock after the last look at the sockets.
    turn_ns: u64,
    looks: Looks,
    timeout_ns: u64,
    connections: Vec<Connection>,
    links: Links,
    free: Queue,
    /// In the order of their writes, so that the first has the first deadline.
    busy: Queue,
    /// In the order of their attempts, so that the first has the first deadline.
    opening: Queue,
    /// Closed connections whose back-off is over.
    to_open: VecDeque<usize>,
    opening_max: usize,
    /// By target: index of the address that was last found to work.
    addresses: Vec<usize>,
    tls: Option<TlsConnector>,
    timers: Timers,
    /// Connections whose sockets have more than was read in one go.
    unread: VecDeque<usize>,
    buffer: Vec<u8>,
    recorder: Recorder,
    /// Calls of the source: for requests, and with answers.
    next_calls: u64,
    show_calls: u64,
    phase_number: u64,
    run: Run,
}

impl Worker {
    fn new(parts: Parts) -> io::Result<Worker> {
        let Parts { thread, config, clock, tls, source, waker, orders, reports, empty } = parts;
        let collects = source.observes() || source.follows();
        let connections: Vec<Connection> = (thread..config.connection_count)
            .step_by(config.thread_count)
            .map(|index| Connection::new(index % config.targets.len(), collects))
            .collect();
        let count = connections.len();
        Ok(Worker {
            thread,
            source_observes: source.observes(),
            source_follows: source.follows(),
            source_delays: source.delays(),
            address: source.address(),
            source,
            orders,
            reports,
            poller: Poller::new(&waker)?,
            now_ns: 0,
            turn_ns: 0,
            looks: Looks::default(),
            timeout_ns: u64::try_from(config.timeout.as_nanos()).unwrap_or(u64::MAX),
            connections,
            links: Links::new(count),
            free: Queue::new(),
            busy: Queue::new(),
            opening: Queue::new(),
            to_open: (0..count).collect(),
            opening_max: (open::OPENING_MAX / config.thread_count).max(1),
            addresses: vec![0; config.targets.len()],
            tls,
            timers: Timers::new(count),
            unread: VecDeque::new(),
            buffer: vec![0; READ_BYTES],
            recorder: Recorder::new(empty, config.ok_statuses.clone()),
            next_calls: 0,
            show_calls: 0,
            phase_number: 0,
            run: Run::default(),
            config,
            clock,
        })
    }

    /// Waits for orders while there is no phase; turns while there is one.
    fn serve(&mut self) -> Result<()> {
        loop {
            let order = match self.run.stage {
                Stage::Idle => {
                    let _waiting = wait::begin(WaitKind::Idle, "load_orders");
                    self.orders.recv().map_err(|_| ())
                }
                _ => match self.orders.try_recv() {
                    Ok(order) => Ok(order),
                    Err(std::sync::mpsc::TryRecvError::Empty) => {
                        self.turns()?;
                        continue;
                    }
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => Err(()),
                },
            };
            match order {
                Ok(order) => self.obey(order)?,
                Err(()) => return Ok(()),
            }
        }
    }

    /// Turns until the phase is over or somebody wakes the loop.
    fn turns(&mut self) -> Result<()> {
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
            let patience = self.patience();
            self.looks.begin(self.now_ns, self.connections.len());
            let count =
                self.poller.wait(patience).map_err(|error| failure("wait for sockets", error))?;
            self.read_clock();
            self.turn_ns = self.now_ns;
            self.run.has_seen_all |= count < EVENTS_PER_WAIT;
            let mut is_woken = false;
            for event in 0..count {
                match self.poller.event(event) {
                    Some(event) => self.handle(event)?,
                    None => is_woken = true,
                }
            }
            for _ in 0..self.unread.len() {
                if let Some(index) = self.unread.pop_front() {
                    self.receive_more(index)?;
                }
            }
            self.looks.end(count);
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

    /// How long the loop may wait.
    fn patience(&mut self) -> Patience {
        let now_ns = self.now_ns;
        let never_sleeps = self.run.spin_ns == u64::MAX && self.run.stage == Stage::Running;
        if never_sleeps || !self.unread.is_empty() || !self.run.has_seen_all {
            return Patience::None;
        }
        let send_ns = self.next_send_ns().min(self.next_waiting_ns());
        let other_ns = self.next_other_ns();
        // What is to be sent is waited for with open eyes at the end: waking up takes longer than a
        // look.
        let spin_ns = self.run.spin_ns;
        let until_ns = send_ns.saturating_sub(spin_ns).min(other_ns);
        if until_ns <= now_ns {
            Patience::None
        } else {
            Patience::Ns((until_ns - now_ns).min(WAIT_NS_MAX))
        }
    }

    fn report(&self, news: News) {
        // A coordinator that is gone hears nothing and needs not: the next order says that it hung
        // up.
        drop(self.reports.send(Report { thread: self.thread, news }));
    }
}

/// Until when the sockets have been looked at.
#[derive(Debug, Default)]
struct Looks {
    /// What had happened before this moment is known.
    seen_ns: u64,
    /// What `seen_ns` will be when there is nothing left to see.
    seeing_ns: u64,
    /// As many looks may find as much as they take: then all sockets have had their turn.
    left: usize,
}

impl Looks {
    fn begin(&mut self, now_ns: u64, connection_count: usize) {
        if self.left == 0 {
            self.seeing_ns = now_ns;
            self.left = connection_count.div_ceil(EVENTS_PER_WAIT) + 1;
        }
    }

    fn end(&mut self, event_count: usize) {
        self.left = if event_count < EVENTS_PER_WAIT { 0 } else { self.left.saturating_sub(1) };
        if self.left == 0 {
            self.seen_ns = self.seeing_ns;
        }
    }
}

/// Longest wait, in nanoseconds: far beyond any phase's next boundary, and within what the kernel
/// takes.
const WAIT_NS_MAX: u64 = 3_600_000_000_000;

/// Tells the coordinator that a worker is gone, also when it panics.
struct Gone {
    thread: usize,
    reports: Sender<Report>,
    error: Option<Error>,
}

impl Gone {
    fn tell(mut self, error: Option<Error>) {
        self.error = error;
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        let error = self.error.take();
        drop(self.reports.send(Report { thread: self.thread, news: News::Failed(error) }));
    }
}

/// A failure of the system that leaves the worker without a way to go on.
fn failure(action: &str, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {action}: {error}"))
}
