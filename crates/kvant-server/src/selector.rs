//! Selector threads: each runs the event loop of its connections. The only file of this crate that
//! starts threads.
//!
//! One acceptor, a task on the first selector, gives each new connection to the selector that has
//! the fewest. A listener for each selector (`SO_REUSEPORT`) would accept in parallel, but spreads
//! by a hash: 64 connections on 2 selectors are then split worse than 27 to 37 in one case of five,
//! and the busier selector sets the tail of the latency. Connections live long; accepting is not
//! what the time goes into.

use crate::admission::{Class, Lag, Pacer, Refusals};
use crate::affinity;
use crate::arrival::Turn;
use crate::batcher::{self, Batcher};
use crate::config::ServerConfig;
use crate::connection;
use crate::counters::{self, Counters};
use crate::event_stream::Bell;
use crate::express::DateText;
use crate::io::{HEAD_BUFFER_BYTES, READ_BYTES_MAX, Scratch, SocketState};
use crate::lifecycle::Lifecycle;
use crate::memory::RequestMemory;
use crate::pool::{Pool, PoolConfig, Port};
use crate::routes::Plane;
use crate::sweep::{self, Connections};
use crate::timing::Timings;
use crate::turnstile::{self, Turnstile};
use hyper::server::conn::http1;
use kvant_base::wait::{self, WaitKind, Waiting};
use kvant_base::{Events, Level, Log};
use kvant_env::Env;
use rustix::thread::CpuSet;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{Notify, mpsc};

/// How long the acceptor rests when the system has no descriptor or memory for another connection.
const ACCEPT_REST: Duration = Duration::from_millis(50);

thread_local! {
    /// While the event loop of this thread waits for sockets and times.
    static RESTING: Cell<Option<Waiting>> = const { Cell::new(None) };
}

/// What all selectors share.
pub(crate) struct Shared {
    pub(crate) config: ServerConfig,
    pub(crate) connections_max: usize,
    pub(crate) env: Env,
    pub(crate) memory: RequestMemory,
    pub(crate) refusals: Arc<Refusals>,
    /// Unless selectors do everything themselves.
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) events: Arc<Events>,
    pub(crate) event_bell: Arc<Bell>,
    pub(crate) counters: Vec<Arc<Counters>>,
    pub(crate) timings: Vec<Arc<Timings>>,
    pub(crate) started_ns: u64,
    /// Told of every connection that closes.
    pub(crate) connection_closed: Notify,
}

/// What a selector is told.
pub(crate) enum Message {
    /// Serve this connection.
    Serve(std::net::TcpStream, Plane),
    /// Finish what is in flight, for at most this long, then end.
    Stop(Duration),
}

/// Where a selector hears [`Message`]s.
pub(crate) type Mailbox = mpsc::UnboundedSender<Message>;

/// One event loop's own state.
pub(crate) struct Selector {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) timings: Arc<Timings>,
    pub(crate) batcher: Batcher,
    pub(crate) turn: Arc<Turn>,
    pub(crate) turnstile: Turnstile,
    pub(crate) lag: Lag,
    pub(crate) pacer: Pacer,
    port: Option<Rc<Port>>,
    pub(crate) http: http1::Builder,
    pub(crate) scratch: Scratch,
    /// Where answers are put together that hyper does not write.
    pub(crate) answer_bytes: RefCell<Vec<u8>>,
    pub(crate) date: RefCell<DateText>,
    pub(crate) stopping: Cell<bool>,
    /// Those that are open: looked at by the sweep, woken when the server stops.
    pub(crate) connections: RefCell<Connections>,
    idle: Notify,
}

impl Selector {
    fn new(shared: Arc<Shared>, turn: Arc<Turn>, index: usize) -> Rc<Selector> {
        let counters = Arc::clone(&shared.counters[index]);
        let timings = Arc::clone(&shared.timings[index]);
        let mut http = http1::Builder::new();
        // A client that has sent its request may close its sending side before it reads the answer.
        http.half_close(true).max_buf_size(HEAD_BUFFER_BYTES);
        Rc::new(Selector {
            counters,
            timings,
            batcher: Batcher::default(),
            turnstile: Turnstile::default(),
            turn,
            lag: Lag::new(&shared.config, Arc::clone(&shared.refusals)),
            pacer: Pacer::default(),
            port: shared.pool.clone().map(|pool| Port::new(pool, index)),
            shared,
            http,
            scratch: Rc::new(RefCell::new(vec![0; READ_BYTES_MAX].into_boxed_slice())),
            answer_bytes: RefCell::default(),
            date: RefCell::default(),
            stopping: Cell::new(false),
            connections: RefCell::default(),
            idle: Notify::new(),
        })
    }

    /// The way to the workers; there is one unless the dispatch mode is `inline`.
    pub(crate) fn port(&self) -> &Rc<Port> {
        self.port.as_ref().expect("modes that send work have a pool")
    }

    /// Writes that a batch for the workers has at most: a longer one would be let in only when
    /// nothing waits.
    pub(crate) fn write_count_max(&self) -> usize {
        PoolConfig::from(&self.shared.config).capacity_of(Class::Write).max(1)
    }

    /// Now, in nanoseconds of the monotonic clock.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.shared.env.clock.monotonic_ns()
    }

    /// Enters a connection and its task in the list of those that are open.
    pub(crate) fn enter(&self, task: &Waker, socket: &Rc<SocketState>) -> usize {
        self.connections.borrow_mut().enter(task, socket)
    }

    /// Takes a connection off the list.
    pub(crate) fn leave(&self, number: usize) {
        let mut connections = self.connections.borrow_mut();
        connections.leave(number);
        if connections.count() == 0 {
            self.idle.notify_one();
        }
    }

    fn serve(self: &Rc<Self>, stream: TcpStream, plane: Plane) {
        counters::add(&self.counters.accepted, 1);
        tokio::task::spawn_local(connection::serve(Rc::clone(self), stream, plane));
    }
}

/// Starts a selector thread. `listeners` are given to one of them only.
pub(crate) fn spawn(
    shared: Arc<Shared>,
    index: usize,
    mut inbox: mpsc::UnboundedReceiver<Message>,
    mailboxes: Vec<Mailbox>,
    listeners: Vec<(StdListener, Plane)>,
) -> io::Result<JoinHandle<()>> {
    let (started, starting) = std::sync::mpsc::channel();
    let turn = Turn::new(Arc::clone(&shared.env.clock));
    let thread =
        std::thread::Builder::new().name(format!("selector-{index}")).spawn(move || {
            let runtime = match bind(&shared, index)
                .and_then(|cpus| build_runtime(cpus, &shared.log, &turn))
            {
                Ok(runtime) => runtime,
                Err(error) => {
                    // The receiver waits below until it has heard.
                    drop(started.send(Err(error)));
                    return;
                }
            };
            drop(started.send(Ok(())));
            runtime.block_on(async {
                let selector = Selector::new(shared, turn, index);
                tokio::task::spawn_local(batcher::run(Rc::clone(&selector)));
                if let Some(port) = &selector.port {
                    port.spawn();
                }
                tokio::task::spawn_local(sweep::run(Rc::clone(&selector)));
                tokio::task::spawn_local(turnstile::run(Rc::clone(&selector)));
                let acceptors: Vec<_> = listeners
                    .into_iter()
                    .map(|(listener, plane)| {
                        let acceptor =
                            accept(Rc::clone(&selector), index, listener, plane, mailboxes.clone());
                        tokio::task::spawn_local(acceptor)
                    })
                    .collect();
                let mut grace = Duration::ZERO;
                while let Some(message) = inbox.recv().await {
                    match message {
                        Message::Serve(stream, plane) => match TcpStream::from_std(stream) {
                            Ok(stream) => selector.serve(stream, plane),
                            Err(error) => lost(&selector.shared, index, &error),
                        },
                        Message::Stop(time_max) => {
                            grace = time_max;
                            break;
                        }
                    }
                }
                acceptors.iter().for_each(tokio::task::JoinHandle::abort);
                finish(&selector, grace).await;
            });
            // A compaction that an operator asked for may still run: closing the store ends it.
            runtime.shutdown_background();
        })?;
    starting.recv().map_err(io::Error::other)??;
    Ok(thread)
}

/// Binds this thread to its CPU, if it has one; then the CPUs that other threads may run on.
fn bind(shared: &Shared, index: usize) -> io::Result<Option<CpuSet>> {
    let cpus = &shared.config.selector_cpus;
    if cpus.is_empty() {
        return Ok(None);
    }
    let allowed = affinity::allowed()?;
    affinity::bind_to(cpus[index % cpus.len()])?;
    Ok(Some(allowed))
}

/// The event loop of a selector. The threads that it starts for work that blocks, such as a
/// compaction that an operator asked for, would inherit the selector's CPU: they are given the
/// others back.
fn build_runtime(
    others_allowed: Option<CpuSet>,
    log: &Arc<dyn Log>,
    turn: &Arc<Turn>,
) -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    let turn = Arc::clone(turn);
    builder.on_thread_park(move || {
        turn.ends();
        RESTING.set(Some(wait::begin(WaitKind::Idle, "selector")));
    });
    builder.on_thread_unpark(|| drop(RESTING.take()));
    if let Some(cpus) = others_allowed {
        let log = Arc::clone(log);
        builder.on_thread_start(move || {
            // The work is done all the same, if only on the selector's CPU.
            if let Err(error) = affinity::allow(&cpus) {
                log.event(Level::Warn, "thread_stays_bound", &[("error", &error)]);
            }
        });
    }
    builder.enable_all().build_local(LocalOptions::default())
}

/// Waits until the open connections are done, for at most `grace`; what is left then is cut.
async fn finish(selector: &Selector, grace: Duration) {
    selector.stopping.set(true);
    selector.connections.borrow().wake_all();
    let all_done = async {
        while selector.connections.borrow().count() > 0 {
            selector.idle.notified().await;
        }
    };
    if tokio::time::timeout(grace, all_done).await.is_err() {
        let count = selector.connections.borrow().count();
        selector.shared.log.event(Level::Warn, "connections_cut", &[("connection_count", &count)]);
    }
}

/// Accepts connections and hands them out, for ever.
async fn accept(
    selector: Rc<Selector>,
    own_index: usize,
    listener: StdListener,
    plane: Plane,
    mailboxes: Vec<Mailbox>,
) {
    let shared = &selector.shared;
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            shared.log.event(Level::Error, "listener_lost", &[("error", &error)]);
            return;
        }
    };
    let mut is_waiting = false;
    loop {
        // Made before the count, so that a close in between is heard.
        let closed = shared.connection_closed.notified();
        if open_connections(shared) >= shared.connections_max {
            if !std::mem::replace(&mut is_waiting, true) {
                counters::add(&selector.counters.accept_waits, 1);
            }
            // The kernel goes on completing connections until its backlog is full.
            closed.await;
            continue;
        }
        is_waiting = false;
        let stream = match listener.accept().await {
            Ok((stream, _peer)) => stream,
            // The peer has gone already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                shared.log.event(Level::Warn, "accept_failed", &[("error", &error)]);
                tokio::time::sleep(ACCEPT_REST).await;
                continue;
            }
        };
        let index = emptiest(&shared.counters);
        shared.counters[index].connections.fetch_add(1, Ordering::Relaxed);
        if index == own_index {
            selector.serve(stream, plane);
            continue;
        }
        match stream.into_std() {
            Ok(stream) => {
                if mailboxes[index].send(Message::Serve(stream, plane)).is_err() {
                    // That selector has stopped, so this one is about to.
                    return;
                }
            }
            Err(error) => lost(shared, index, &error),
        }
    }
}

/// A connection that was counted for a selector and never got there.
fn lost(shared: &Shared, index: usize, error: &io::Error) {
    shared.counters[index].connections.fetch_sub(1, Ordering::Relaxed);
    shared.connection_closed.notify_waiters();
    shared.log.event(Level::Warn, "connection_lost", &[("error", error)]);
}

fn open_connections(shared: &Shared) -> usize {
    shared.counters.iter().map(|counters| counters.connections.load(Ordering::Relaxed)).sum()
}

fn emptiest(counters: &[Arc<Counters>]) -> usize {
    let fewest = (0..counters.len())
        .min_by_key(|&index| counters[index].connections.load(Ordering::Relaxed));
    fewest.unwrap_or(0)
}
