//! Selector threads: each runs the event loop of its connections. The only file of this crate that
//! starts threads.
//!
//! One acceptor, a task on the first selector, gives each new connection to the selector that has
//! the fewest. One listener for each selector (`SO_REUSEPORT`) would accept in parallel, but
//! distributes by a hash: 64 connections on 2 selectors are then split worse than 27 to 37 in one
//! case of five, and the busier selector sets the tail of the latency. Connections live long, so
//! accepting takes little of the time.

use crate::admission::{Lag, Pacer};
use crate::affinity;
use crate::config::ServerConfig;
use crate::conn::{self, Buffers, ConnContext, HEAD_BUFFER_BYTES, OpenConnections};
use crate::counters::Counters;
use crate::http::Plane;
use crate::routes::{Routes, ServerState};
use crate::timing::Meter;
use crate::turns::{self, ReadBudget, Turn};
use crate::work::pool::Port;
use crate::work::{self, Storage};
use hyper::server::conn::http1;
use kvant_base::wait::{self, WaitKind, Waiting};
use kvant_base::{Level, Log};
use kvant_env::posix::{TIME_SLICE_MIN, set_time_slice};
use rustix::thread::CpuSet;
use std::cell::Cell;
use std::io;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{Notify, mpsc};

/// How long the acceptor rests when the system has no descriptor or memory for another connection.
const ACCEPT_REST: Duration = Duration::from_millis(50);

thread_local! {
    /// While the event loop of this thread waits for sockets and times.
    static IDLE: Cell<Option<Waiting>> = const { Cell::new(None) };
}

pub(crate) struct Selectors {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) server: Arc<ServerState>,
    /// Notified of every connection that closes.
    pub(crate) connection_closed: Arc<Notify>,
}

pub(crate) enum Message {
    Serve(std::net::TcpStream, Plane),
    /// Finish the requests in flight, for at most this long, then end.
    Stop(Duration),
}

/// Where a selector receives [`Message`]s.
pub(crate) type Mailbox = mpsc::UnboundedSender<Message>;

impl Selectors {
    /// Starts the selector with this index. `listeners` are given to one of them only.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        index: usize,
        inbox: mpsc::UnboundedReceiver<Message>,
        mailboxes: Vec<Mailbox>,
        listeners: Vec<(StdListener, Plane)>,
    ) -> io::Result<JoinHandle<()>> {
        let selectors = Arc::clone(self);
        let (started, starting) = std::sync::mpsc::channel();
        let turn = Turn::new(Arc::clone(&self.server.env.clock));
        let run = move || {
            // Once woken, it runs before threads with work for longer, as flushes and compactions.
            if let Err(error) = set_time_slice(TIME_SLICE_MIN) {
                // A sandbox refuses the call; requests then wait longer for background work.
                let log = &selectors.server.log;
                log.event(Level::Warn, "time_slice_refused", &[("error", &error)]);
            }
            let runtime = match selectors
                .bind(index)
                .and_then(|cpus| build_runtime(cpus, &selectors.server.log, &turn))
            {
                Ok(runtime) => runtime,
                Err(error) => {
                    // The receiver waits below for this message.
                    drop(started.send(Err(error)));
                    return;
                }
            };
            drop(started.send(Ok(())));
            runtime.block_on(async {
                let cx = selectors.connect(index, turn);
                run(&selectors, index, cx, inbox, mailboxes, listeners).await;
            });
            // An operator's compaction may still run: closing the store ends it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(format!("selector-{index}")).spawn(run)?;
        starting.recv().map_err(io::Error::other)??;
        Ok(thread)
    }

    /// Binds this thread to its CPU, if it has one; returns the CPUs that other threads may run on.
    fn bind(&self, index: usize) -> io::Result<Option<CpuSet>> {
        let cpus = &self.config.selector_cpus;
        if cpus.is_empty() {
            return Ok(None);
        }
        let allowed = affinity::allowed()?;
        affinity::bind_to(cpus[index % cpus.len()])?;
        Ok(Some(allowed))
    }

    /// Connects the layers of one selector. Called inside its runtime.
    fn connect(&self, index: usize, turn: Arc<Turn>) -> Rc<ConnContext> {
        let server = &self.server;
        let meter = Rc::new(Meter {
            clock: Arc::clone(&server.env.clock),
            counters: Arc::clone(&server.counters[index]),
            timings: Arc::clone(&server.timings[index]),
        });
        let read_budget = ReadBudget::new(turn);
        let storage = Rc::new(Storage {
            config: Arc::clone(&self.config),
            meter: Rc::clone(&meter),
            memory: Arc::clone(&server.memory),
            log: Arc::clone(&server.log),
            lifecycle: Arc::clone(&server.lifecycle),
            read_budget: Arc::clone(&read_budget),
            lag: Lag::new(&self.config, Arc::clone(&server.refusals)),
            port: server.pool.clone().map(|pool| Port::new(pool, index)),
            batcher: Default::default(),
            remote_value_bytes: Default::default(),
        });
        let mut http = http1::Builder::new();
        // A client that has sent its request may close its sending side before it reads the
        // response.
        http.half_close(true).max_buf_size(HEAD_BUFFER_BYTES);
        Rc::new(ConnContext {
            config: Arc::clone(&self.config),
            meter,
            memory: Arc::clone(&server.memory),
            log: Arc::clone(&server.log),
            storage,
            handler: Box::new(Routes(Arc::clone(server))),
            read_budget,
            pacer: Pacer::default(),
            http,
            buffers: Buffers::default(),
            open: OpenConnections::default(),
            connection_closed: Arc::clone(&self.connection_closed),
            stopping: Cell::new(false),
        })
    }

    /// Uncounts a connection that was accepted for a selector and never reached it.
    fn lose_connection(&self, index: usize, error: &io::Error) {
        self.server.counters[index].connections.fetch_sub(1, Ordering::Relaxed);
        self.connection_closed.notify_waiters();
        self.server.log.event(Level::Warn, "connection_lost", &[("error", error)]);
    }
}

/// The event loop of a selector. Threads that it starts for blocking work, such as an operator's
/// compaction, would inherit the selector's CPU: they may run on `others_allowed` instead.
fn build_runtime(
    others_allowed: Option<CpuSet>,
    log: &Arc<dyn Log>,
    turn: &Arc<Turn>,
) -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    let turn = Arc::clone(turn);
    builder.on_thread_park(move || {
        turn.end();
        IDLE.set(Some(wait::begin(WaitKind::Idle, "selector")));
    });
    builder.on_thread_unpark(|| drop(IDLE.take()));
    if let Some(cpus) = others_allowed {
        let log = Arc::clone(log);
        builder.on_thread_start(move || {
            // The work is done all the same, on the selector's CPU.
            if let Err(error) = affinity::allow(&cpus) {
                log.event(Level::Warn, "thread_stays_bound", &[("error", &error)]);
            }
        });
    }
    builder.enable_all().build_local(LocalOptions::default())
}

/// Serves connections until [`Message::Stop`].
async fn run(
    selectors: &Arc<Selectors>,
    index: usize,
    cx: Rc<ConnContext>,
    mut inbox: mpsc::UnboundedReceiver<Message>,
    mailboxes: Vec<Mailbox>,
    listeners: Vec<(StdListener, Plane)>,
) {
    work::spawn_tasks(&cx.storage);
    tokio::task::spawn_local(conn::sweep(Rc::clone(&cx)));
    tokio::task::spawn_local(turns::run(Arc::clone(&cx.read_budget)));
    let acceptors: Vec<_> = listeners
        .into_iter()
        .map(|(listener, plane)| {
            let acceptor = Acceptor {
                selectors: Arc::clone(selectors),
                cx: Rc::clone(&cx),
                own_index: index,
                plane,
                mailboxes: mailboxes.clone(),
            };
            tokio::task::spawn_local(acceptor.run(listener))
        })
        .collect();
    let mut grace = Duration::ZERO;
    while let Some(message) = inbox.recv().await {
        match message {
            Message::Serve(stream, plane) => match TcpStream::from_std(stream) {
                Ok(stream) => serve(&cx, stream, plane),
                Err(error) => selectors.lose_connection(index, &error),
            },
            Message::Stop(time_max) => {
                grace = time_max;
                break;
            }
        }
    }
    acceptors.iter().for_each(tokio::task::JoinHandle::abort);
    finish(&cx, grace).await;
}

fn serve(cx: &Rc<ConnContext>, stream: TcpStream, plane: Plane) {
    cx.meter.counters.connections_accepted.add(1);
    tokio::task::spawn_local(conn::serve(Rc::clone(cx), stream, plane));
}

/// Waits until the open connections are done, for at most `grace`; then the rest is cut.
async fn finish(cx: &ConnContext, grace: Duration) {
    cx.stopping.set(true);
    cx.open.wake_all();
    if tokio::time::timeout(grace, cx.open.wait_until_none()).await.is_err() {
        let count = cx.open.count();
        cx.log.event(Level::Warn, "connections_cut", &[("connection_count", &count)]);
    }
}

/// Accepts the connections of one listener and distributes them.
struct Acceptor {
    selectors: Arc<Selectors>,
    cx: Rc<ConnContext>,
    own_index: usize,
    plane: Plane,
    mailboxes: Vec<Mailbox>,
}

impl Acceptor {
    /// Returns only when the listener is lost or the server stops.
    async fn run(self, listener: StdListener) {
        let Selectors { server, connection_closed, .. } = &*self.selectors;
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                server.log.event(Level::Error, "listener_lost", &[("error", &error)]);
                return;
            }
        };
        let mut is_waiting = false;
        loop {
            // Made before the count, so that a close in between is heard.
            let closed = connection_closed.notified();
            if open_count(&server.counters) >= server.connections_max {
                if !std::mem::replace(&mut is_waiting, true) {
                    self.cx.meter.counters.accept_waits.add(1);
                }
                // The kernel goes on completing connections until its backlog is full.
                closed.await;
                continue;
            }
            is_waiting = false;
            let stream = match listener.accept().await {
                Ok((stream, _peer)) => stream,
                // The peer has closed the connection already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    server.log.event(Level::Warn, "accept_failed", &[("error", &error)]);
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            let index = least_loaded(&server.counters);
            server.counters[index].connections.fetch_add(1, Ordering::Relaxed);
            if index == self.own_index {
                serve(&self.cx, stream, self.plane);
                continue;
            }
            match stream.into_std() {
                Ok(stream) => {
                    let message = Message::Serve(stream, self.plane);
                    if self.mailboxes[index].send(message).is_err() {
                        // That selector has stopped: this one is about to.
                        return;
                    }
                }
                Err(error) => self.selectors.lose_connection(index, &error),
            }
        }
    }
}

fn open_count(counters: &[Arc<Counters>]) -> usize {
    counters.iter().map(|counters| counters.connections.load(Ordering::Relaxed)).sum()
}

fn least_loaded(counters: &[Arc<Counters>]) -> usize {
    let fewest = (0..counters.len())
        .min_by_key(|&index| counters[index].connections.load(Ordering::Relaxed));
    fewest.unwrap_or(0)
}
