//! A server that gives one response to every request, or passes for a Kvant in some respect.

use crate::staged;
use kvant_base::tag;
use kvant_env::Env;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const COMPACT: &str = "/v0/admin/compact";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: small/1\r\nContent-Length: 5\r\n\r\nhello";
/// The monotonic clock of [`Server::elsewhere`] less that of this machine.
pub(crate) const AHEAD_NS: i64 = 3_600_000_000_000;
/// How long [`Server::stalling`] sends no response.
pub(crate) const STALL: Duration = Duration::from_millis(150);
/// How long its one event lasted, which began when the stream of events was opened.
pub(crate) const EVENT_US: u64 = 2_000;

#[derive(Clone, Copy)]
enum Kind {
    Plain,
    HangingAt(&'static str),
    Elsewhere,
    Stalling,
    Staged,
}

/// A running server, which stops to accept when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    hanging_count: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::with(Kind::Plain)
    }

    /// A server with the statistics of a Kvant that never responds to requests for paths that
    /// begin so.
    pub(crate) fn hanging_at(path: &'static str) -> Server {
        Server::with(Kind::HangingAt(path))
    }

    /// A Kvant whose clock is that of another machine.
    pub(crate) fn elsewhere() -> Server {
        Server::with(Kind::Elsewhere)
    }

    /// A server that stalls for [`STALL`] at each flush, does nothing at compactions, and knows no
    /// other work of an operator.
    pub(crate) fn stalling() -> Server {
        Server::with(Kind::Stalling)
    }

    /// A server whose stages take known times, and can be slowed down.
    pub(crate) fn staged() -> Server {
        Server::with(Kind::Staged)
    }

    /// Requests without a response.
    pub(crate) fn hanging_count(&self) -> usize {
        self.hanging_count.load(Ordering::SeqCst)
    }

    fn with(kind: Kind) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let hanging_count = Arc::new(AtomicUsize::new(0));
        let (over, hangs) = (Arc::clone(&is_over), Arc::clone(&hanging_count));
        let stalled_until = Arc::new(Mutex::new(Instant::now()));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (hangs, until) = (Arc::clone(&hangs), Arc::clone(&stalled_until));
                std::thread::spawn(move || serve(stream.unwrap(), kind, &hangs, &until));
            }
        });
        Server { address, is_over, hanging_count, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Responds until the client closes. Requests have no bodies.
fn serve(
    mut stream: TcpStream,
    kind: Kind,
    hanging_count: &AtomicUsize,
    stalled_until: &Mutex<Instant>,
) {
    stream.set_nodelay(true).unwrap();
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = rested(|| stream.read(&mut buffer)) {
        unread.extend_from_slice(&buffer[..count]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(unread.drain(..end + 4).collect()).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let response = match kind {
                Kind::HangingAt(hanging) if path.starts_with(hanging) => {
                    hanging_count.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_secs(30));
                    return;
                }
                Kind::HangingAt(_) if path == "/v0/stats" => stats(""),
                Kind::Elsewhere if path == "/v0/stats" => {
                    stats(&format!("\"monotonic_ns\":{},\"wall_ms\":0", its_ns()))
                }
                Kind::Elsewhere if path == "/v0/events" => event(),
                Kind::Stalling if path == "/v0/admin/flush" => {
                    *stalled_until.lock().unwrap() = Instant::now() + STALL;
                    RESPONSE.to_vec()
                }
                Kind::Stalling if path.starts_with("/v0/admin/") && path != COMPACT => {
                    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()
                }
                Kind::Stalling => {
                    let until = *stalled_until.lock().unwrap();
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    RESPONSE.to_vec()
                }
                Kind::Staged => staged::respond(path),
                _ => RESPONSE.to_vec(),
            };
            if stream.write_all(&response).is_err() {
                return;
            }
        }
    }
}

/// Waits for others: rest, if stages are slowed down.
fn rested<T>(wait: impl FnOnce() -> T) -> T {
    let _resting = tag::rest();
    wait()
}

/// What a Kvant says at `/v0/stats`, as far as the lab recognizes it by that.
fn stats(members: &str) -> Vec<u8> {
    let body = format!("{{\"server\":{{{members}}},\"latency\":{{}}}}");
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A stream with one event that has ended already.
fn event() -> Vec<u8> {
    let data = format!(
        "{{\"span\":1,\"start_ns\":{},\"duration_us\":{EVENT_US},\"fields\":{{}}}}",
        its_ns()
    );
    format!("HTTP/1.1 200 OK\r\n\r\nevent: flush\ndata: {data}\n\n").into_bytes()
}

fn its_ns() -> u64 {
    Env::posix().clock.monotonic_ns().strict_add_signed(AHEAD_NS)
}
