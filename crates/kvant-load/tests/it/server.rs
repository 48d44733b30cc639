//! Servers with exact behaviour, whose figures can be computed.
//!
//! A server has one thread with one epoll loop, so that a thousand connections are as punctual as
//! one. Requests end with their empty lines: they have no bodies.

use crate::tls::ServerSide;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};
use rustls::ServerConfig;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The response to every request.
pub(crate) const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// A response with every element of framing.
pub(crate) const CHUNKED_RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n";

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// How a server responds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Behaviour {
    /// This long after reading the request.
    After(Duration),
    /// At once, except from `from` to `to` of each period since the first request.
    Stall { period: Duration, from: Duration, to: Duration },
    /// At once; but every so many requests (over all connections) the connection ends.
    Drop { every: u64, place: Place },
    /// Byte by byte, with this delay between bytes.
    Bytewise(&'static [u8], Duration),
    /// Never.
    Silent,
    /// At once; shuts down its sending side after so many responses of a connection, but neither
    /// closes it nor stops reading.
    HalfClose { responses: u64 },
}

/// When a connection is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Before the response.
    Before,
    /// Within the response.
    Within,
    /// After the response, without announcement.
    After,
}

/// The server's counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// A running server, which ends when it is dropped.
pub(crate) struct Server {
    pub(crate) counts: Arc<Counts>,
    address: Option<SocketAddr>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on a free port.
    pub(crate) fn start(behaviour: Behaviour) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        // The default backlog is too short for a thousand connections at once.
        rustix::net::listen(&listener, 4_096).unwrap();
        listener.set_nonblocking(true).unwrap();
        Server::with_listener(listener.into(), Some(address), behaviour, None)
    }

    /// As [`Server::start`], with TLS.
    pub(crate) fn start_tls(behaviour: Behaviour, config: ServerConfig) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        Server::with_listener(listener.into(), Some(address), behaviour, Some(Arc::new(config)))
    }

    /// Listens on a Unix socket.
    pub(crate) fn start_unix(behaviour: Behaviour, path: &Path) -> Server {
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Server::with_listener(listener.into(), None, behaviour, None)
    }

    fn with_listener(
        listener: OwnedFd,
        address: Option<SocketAddr>,
        behaviour: Behaviour,
        tls: Option<Arc<ServerConfig>>,
    ) -> Server {
        let counts = Arc::new(Counts::default());
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap());
        let mut serving = Serving {
            epoll: epoll::create(CreateFlags::CLOEXEC).unwrap(),
            listener,
            stop: Arc::clone(&stop),
            behaviour,
            tls,
            counts: Arc::clone(&counts),
            connections: HashMap::new(),
            due: BinaryHeap::new(),
            next_id: 0,
            first_request: None,
        };
        let thread = std::thread::spawn(move || serving.run());
        Server { counts, address, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address.expect("it listens on TCP"))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("it listens on TCP")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        rustix::io::write(&*self.stop, &1_u64.to_ne_bytes()).unwrap();
        if self.thread.take().unwrap().join().is_err() && !std::thread::panicking() {
            panic!("the server failed");
        }
    }
}

impl Counts {
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// A scheduled action, ordered by time and then by creation.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    order: u64,
    connection: u64,
    from_byte: usize,
}

struct Serving {
    epoll: OwnedFd,
    listener: OwnedFd,
    stop: Arc<OwnedFd>,
    behaviour: Behaviour,
    tls: Option<Arc<ServerConfig>>,
    counts: Arc<Counts>,
    connections: HashMap<u64, Connection>,
    due: BinaryHeap<Reverse<Due>>,
    next_id: u64,
    first_request: Option<Instant>,
}

struct Connection {
    socket: OwnedFd,
    tls: Option<ServerSide>,
    /// Bytes at the end of the input that may begin an empty line.
    newlines: u8,
    responded: u64,
    /// The sending side is shut down.
    is_mute: bool,
}

impl Serving {
    fn run(&mut self) {
        // Some sandboxes refuse it: responses are then slightly later.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).ok();
        let add = |fd: &OwnedFd, token| {
            epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)
        };
        add(&self.listener, LISTENER).unwrap();
        add(&self.stop, STOP).unwrap();
        let mut events: Vec<Event> = Vec::with_capacity(64);
        loop {
            let now = Instant::now();
            while self.due.peek().is_some_and(|Reverse(due)| due.at <= now) {
                let Reverse(due) = self.due.pop().expect("it was there");
                self.respond(due);
            }
            let timeout = self.due.peek().map(|Reverse(due)| {
                let wait = due.at.saturating_duration_since(now);
                Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() }
            });
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("{error}"),
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    LISTENER => self.accept(),
                    id => self.read(id),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok(socket) =
            rustix::net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        {
            // It fails for a Unix socket.
            rustix::net::sockopt::set_tcp_nodelay(&socket, true).ok();
            self.counts.connections.fetch_add(1, Ordering::Relaxed);
            let id = self.next_id;
            self.next_id += 1;
            epoll::add(&self.epoll, &socket, EventData::new_u64(id), EventFlags::IN).unwrap();
            let tls = self.tls.clone().map(ServerSide::new);
            let connection = Connection { socket, tls, newlines: 0, responded: 0, is_mute: false };
            self.connections.insert(id, connection);
        }
    }

    fn read(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let mut buffer = [0; 16 << 10];
        let read = match rustix::net::recv(&connection.socket, &mut buffer, RecvFlags::empty()) {
            Ok((read, _)) if read > 0 => read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            _ => {
                self.connections.remove(&id);
                return;
            }
        };
        let plain = match &mut connection.tls {
            None => buffer[..read].to_vec(),
            Some(tls) => tls.received(&buffer[..read]),
        };
        connection.send(&[]);
        for byte in plain {
            connection.newlines = match byte {
                b'\n' => connection.newlines + 1,
                b'\r' => connection.newlines,
                _ => 0,
            };
            if connection.newlines == 2 {
                connection.newlines = 0;
                self.counts.requests.fetch_add(1, Ordering::Relaxed);
                let now = Instant::now();
                let first = *self.first_request.get_or_insert(now);
                let delay = match self.behaviour {
                    Behaviour::After(delay) => delay,
                    Behaviour::Stall { period, from, to } => {
                        let within = Duration::from_nanos(
                            ((now - first).as_nanos() % period.as_nanos()) as u64,
                        );
                        if within >= from && within < to { to - within } else { Duration::ZERO }
                    }
                    Behaviour::Silent => continue,
                    _ => Duration::ZERO,
                };
                let order = self.counts.requests();
                self.due.push(Reverse(Due {
                    at: now + delay,
                    order,
                    connection: id,
                    from_byte: 0,
                }));
            }
        }
    }

    /// Sends a response, or its next byte, according to the behaviour.
    fn respond(&mut self, due: Due) {
        let Some(connection) = self.connections.get_mut(&due.connection) else {
            return;
        };
        if connection.is_mute {
            return;
        }
        let mut is_over = false;
        match self.behaviour {
            Behaviour::After(_) | Behaviour::Stall { .. } => connection.send(RESPONSE),
            Behaviour::Silent => {}
            Behaviour::Drop { every, place } => {
                is_over = due.order.is_multiple_of(every);
                let response_bytes = match place {
                    Place::Before if is_over => 0,
                    Place::Within if is_over => RESPONSE.len() / 2,
                    _ => RESPONSE.len(),
                };
                connection.send(&RESPONSE[..response_bytes]);
            }
            Behaviour::Bytewise(response, distance) => {
                connection.send(&response[due.from_byte..=due.from_byte]);
                if due.from_byte + 1 < response.len() {
                    let at = due.at + distance;
                    self.due.push(Reverse(Due { at, from_byte: due.from_byte + 1, ..due }));
                }
            }
            Behaviour::HalfClose { responses } => {
                if connection.responded < responses {
                    connection.send(RESPONSE);
                }
                connection.responded += 1;
                if connection.responded >= responses {
                    connection.is_mute = true;
                    rustix::net::shutdown(&connection.socket, Shutdown::Write).ok();
                    self.counts.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        if is_over {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            self.connections.remove(&due.connection);
        }
    }
}

impl Connection {
    /// Sends bytes, and pending TLS records. Reading detects a closed connection.
    fn send(&mut self, bytes: &[u8]) {
        let encrypted;
        let bytes = match &mut self.tls {
            None => bytes,
            Some(tls) => {
                encrypted = tls.sending(bytes);
                &encrypted
            }
        };
        if !bytes.is_empty() {
            match rustix::net::send(self.socket.as_fd(), bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => assert_eq!(sent, bytes.len(), "responses are short"),
                Err(Errno::PIPE | Errno::CONNRESET) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}
