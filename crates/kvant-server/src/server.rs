//! The server, from its start to its stop.

use crate::admission::Refusals;
use crate::config::{DispatchMode, ServerConfig};
use crate::counters::Counters;
use crate::descriptors;
use crate::history::{History, Recorder};
use crate::http::Plane;
use crate::memory::RequestMemory;
use crate::routes::ServerState;
use crate::selector::{Mailbox, Message, Selectors};
use crate::store::{Backend, Capability};
use crate::work::Lifecycle;
use crate::work::pool::Pool;
use kvant_base::lock::{self, NamedMutex};
use kvant_base::wait::WaitKind;
use kvant_base::{Events, Level, Log, MemoryBudget, duration};
use kvant_env::{Env, Step, Task};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

/// Connections that the kernel completes before they are accepted; it may cut this to its own
/// limit.
const BACKLOG_COUNT: i32 = 4096;

/// How long threads may take to end when nothing is waited for any more.
const THREADS_END_MAX: Duration = Duration::from_secs(1);

/// A running server. It listens at once, and responds `503` of type `recovering` until it has its
/// store.
pub struct Server {
    state: Arc<ServerState>,
    local_addr: SocketAddr,
    admin_addr: Option<SocketAddr>,
    mailboxes: Vec<Mailbox>,
    threads: Vec<JoinHandle<()>>,
    recorder: Option<Recorder>,
}

impl Server {
    /// Binds the listeners and starts the selectors. `events` is where the store's events are, and
    /// the server's own go.
    ///
    /// # Errors
    /// An address cannot be bound, a thread cannot be started, or the settings contradict each
    /// other.
    pub fn start(
        config: ServerConfig,
        env: Env,
        memory: Arc<MemoryBudget>,
        log: Arc<dyn Log>,
        events: Arc<Events>,
    ) -> io::Result<Server> {
        let problems = config.problems();
        if !problems.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problems.join("; ")));
        }
        let config = Arc::new(config);
        let listener = bind(config.listen)?;
        let local_addr = listener.local_addr()?;
        let admin_listener = config.admin_listen.map(bind).transpose()?;
        let admin_addr = admin_listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let listeners = match admin_listener {
            None => vec![(listener, Plane::Both)],
            Some(admin_listener) => {
                vec![(listener, Plane::Data), (admin_listener, Plane::Operator)]
            }
        };
        let room_count = descriptors::room_for_connections(config.selectors)?;
        let connections_max = config.connections_max.unwrap_or(room_count).min(room_count);
        if let Some(wanted) = config.connections_max
            && wanted > room_count
        {
            log.event(
                Level::Warn,
                "descriptors_short",
                &[("connections_max", &wanted), ("room_for", &room_count)],
            );
        }
        let selector_count = config.selectors;
        let started_ns = env.clock.monotonic_ns();
        let lifecycle = Arc::<Lifecycle>::default();
        let refusals = Refusals::new(Arc::clone(&events));
        let pool = (config.dispatch != DispatchMode::Inline).then(|| {
            Pool::start(
                Arc::clone(&config),
                &env,
                Arc::clone(&lifecycle),
                Arc::clone(&refusals),
                selector_count,
            )
        });
        let timings: Vec<_> = (0..selector_count).map(|_| Arc::default()).collect();
        let history = (!config.history.is_zero())
            .then(|| History::new(duration::ns(config.history), &memory));
        let recorder = history
            .as_ref()
            .map(|history| Recorder::start(&env, Arc::clone(history), timings.clone()));
        let state = Arc::new(ServerState {
            memory: Arc::new(RequestMemory::new(memory, config.value_bytes_max)),
            env,
            log,
            lifecycle,
            refusals,
            pool,
            events,
            event_bell: Arc::default(),
            counters: (0..selector_count).map(|_| Arc::<Counters>::default()).collect(),
            timings,
            history,
            started_ns,
            connections_max,
        });
        let selectors = Arc::new(Selectors {
            config,
            server: Arc::clone(&state),
            connection_closed: Arc::default(),
        });
        let (mailboxes, inboxes): (Vec<_>, Vec<_>) =
            (0..selector_count).map(|_| unbounded_channel()).unzip();
        let mut server =
            Server { state, local_addr, admin_addr, mailboxes, threads: Vec::new(), recorder };
        let mut listeners = Some(listeners);
        for (index, inbox) in inboxes.into_iter().enumerate() {
            let listeners = listeners.take().unwrap_or_default();
            let mailboxes = server.mailboxes.clone();
            match selectors.spawn(index, inbox, mailboxes, listeners) {
                Ok(thread) => server.threads.push(thread),
                Err(error) => {
                    server.stop_selectors(Duration::ZERO);
                    return Err(error);
                }
            }
        }
        server.state.log.event(
            Level::Info,
            "listening",
            &[
                ("address", &local_addr),
                ("selectors", &selector_count),
                ("connections_max", &connections_max),
            ],
        );
        if let Some(admin_addr) = admin_addr {
            server.state.log.event(
                Level::Info,
                "listening_for_operators",
                &[("address", &admin_addr)],
            );
        }
        Ok(server)
    }

    /// The address of the data plane.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The address of the operator API, where it has a listener of its own.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin_addr
    }

    /// Shows clients how much of the recovery is done, in per cent, until the server has its store.
    pub fn set_recovering(&self, per_cent: impl Fn() -> u64 + Send + Sync + 'static) {
        self.state.lifecycle.set_recovering(Box::new(per_cent));
    }

    /// Returns what shows clients why the cluster cannot be reached, until the server has its
    /// store.
    pub fn waits_for_cluster(&self) -> Arc<dyn Fn(&kvant_base::Error) + Send + Sync> {
        let lifecycle = Arc::clone(&self.state.lifecycle);
        Arc::new(move |cause| lifecycle.set_away(cause))
    }

    /// Gives the server its store: from now on entities are served. A second store is ignored.
    pub fn set_ready(&self, store: Backend) {
        if !store.has(Capability::Persistence) {
            self.state.log.event(Level::Warn, "not_persistent", &[("engine", &store.name())]);
        }
        self.state.lifecycle.set_ready(store);
    }

    /// Stops accepting, closes idle connections, lets requests in flight finish for at most
    /// `grace`, then closes the store. Threads that a read still blocks a second later are
    /// abandoned.
    ///
    /// # Errors
    /// What closing the store failed with.
    pub fn stop(mut self, grace: Duration) -> kvant_base::Result<()> {
        self.stop_selectors(grace);
        self.state.lifecycle.store().map_or(Ok(()), |store| store.close())
    }

    /// A second call does nothing.
    fn stop_selectors(&mut self, grace: Duration) {
        if self.mailboxes.is_empty() {
            return;
        }
        for mailbox in self.mailboxes.drain(..) {
            // A selector that has ended already has no receiver.
            drop(mailbox.send(Message::Stop(grace)));
        }
        let stopper = Arc::new(Stopper {
            threads: NamedMutex::new("stopper", std::mem::take(&mut self.threads)),
            recorder: self.recorder.take(),
            state: Arc::clone(&self.state),
            waiting: std::thread::current(),
            is_done: AtomicBool::new(false),
        });
        self.state.env.spawner.spawn(stopper.clone());
        let (begun, time_max) = (Instant::now(), grace.saturating_add(THREADS_END_MAX));
        while !stopper.is_done.load(Ordering::Acquire) {
            let left = time_max.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            lock::park(WaitKind::Idle, "stop", Some(left));
        }
        if !stopper.is_done.load(Ordering::Acquire) {
            self.state.log.event(Level::Warn, "threads_left", &[]);
        }
    }
}

/// Waits for the threads of a server that stops. It has a thread of its own, since a read may block
/// for any time and no thread can be ended from outside.
struct Stopper {
    threads: NamedMutex<Vec<JoinHandle<()>>>,
    recorder: Option<Recorder>,
    state: Arc<ServerState>,
    waiting: Thread,
    is_done: AtomicBool,
}

impl Task for Stopper {
    fn name(&self) -> &str {
        "stopper"
    }

    fn step(&self) -> Step {
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if thread.join().is_err() {
                self.state.log.event(Level::Error, "selector_panicked", &[]);
            }
        }
        if let Some(pool) = &self.state.pool {
            pool.stop();
        }
        if let Some(recorder) = &self.recorder {
            recorder.stop();
        }
        self.is_done.store(true, Ordering::Release);
        self.waiting.unpark();
        Step::Finished
    }
}

impl Drop for Server {
    /// A server that is dropped without [`Server::stop`] ends at once and leaves its store open.
    fn drop(&mut self) {
        self.stop_selectors(Duration::ZERO);
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listen = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restarted server must not wait for the old connections to leave the kernel.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG_COUNT)?;
        socket.set_nonblocking(true)?;
        Ok(TcpListener::from(socket))
    };
    listen().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })
}
