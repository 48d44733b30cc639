//! A server that gives one response to every request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: small/1\r\nContent-Length: 5\r\n\r\nhello";
/// What a Kvant says at `/v0/stats`, as far as the lab recognizes it by that.
const STATS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{\"server\":{},\"latency\":{}}";

/// A running server, which stops to accept when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    hanging_count: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::with(None)
    }

    /// A server with the statistics of a Kvant that never responds to requests for paths that
    /// begin so.
    pub(crate) fn hanging_at(path: &'static str) -> Server {
        Server::with(Some(path))
    }

    /// Requests without a response.
    pub(crate) fn hanging_count(&self) -> usize {
        self.hanging_count.load(Ordering::SeqCst)
    }

    fn with(hanging: Option<&'static str>) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let hanging_count = Arc::new(AtomicUsize::new(0));
        let (over, hangs) = (Arc::clone(&is_over), Arc::clone(&hanging_count));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let hangs = Arc::clone(&hangs);
                std::thread::spawn(move || serve(stream.unwrap(), hanging, &hangs));
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
fn serve(mut stream: TcpStream, hanging: Option<&str>, hanging_count: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..count]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(unread.drain(..end + 4).collect()).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default();
            if hanging.is_some_and(|hanging| path.starts_with(hanging)) {
                hanging_count.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_secs(30));
                return;
            }
            let is_stats = hanging.is_some() && path == "/v0/stats";
            let response = if is_stats { STATS } else { RESPONSE };
            if stream.write_all(response).is_err() {
                return;
            }
        }
    }
}
