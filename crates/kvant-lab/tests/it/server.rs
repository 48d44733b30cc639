//! A server that gives one response to every request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: small/1\r\nContent-Length: 5\r\n\r\nhello";

/// A running server, which stops to accept when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::spawn(move || serve(stream.unwrap()));
            }
        });
        Server { address, is_over, thread: Some(thread) }
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
fn serve(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..count]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            unread.drain(..end + 4);
            if stream.write_all(RESPONSE).is_err() {
                return;
            }
        }
    }
}
