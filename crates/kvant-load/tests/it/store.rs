//! A small store over HTTP, which can fail in the ways that a fill must survive.
//!
//! Each connection has a blocking thread, which ends with the connection or the store.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// How the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Nothing,
    /// Of this many requests, one is refused, one fails, one is lost before and one after its
    /// execution.
    Every(u64),
    /// This response to every request.
    Always(&'static str),
    /// No response.
    Silence,
}

/// The store's counts.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Keys, the lengths of their values, and how often they were stored.
    pub(crate) stored: Mutex<BTreeMap<String, (usize, u64)>>,
    pub(crate) requests: AtomicU64,
    trouble: AtomicU64,
    is_over: AtomicBool,
}

pub(crate) struct Store {
    pub(crate) seen: Arc<Seen>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl Store {
    pub(crate) fn start(trouble: Trouble) -> Store {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let acceptor = {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || accept(&listener, trouble, &seen))
        };
        Store { seen, address, acceptor: Some(acceptor) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Keys and how often each was stored.
    pub(crate) fn keys(&self) -> BTreeMap<String, u64> {
        let stored = self.seen.stored.lock().unwrap();
        stored.iter().map(|(key, (_, times))| (key.clone(), *times)).collect()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.seen.is_over.store(true, Ordering::Relaxed);
        // Wakes up the acceptor.
        drop(TcpStream::connect(self.address));
        self.acceptor.take().unwrap().join().unwrap();
    }
}

fn accept(listener: &TcpListener, trouble: Trouble, seen: &Arc<Seen>) {
    let mut connections = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        if seen.is_over.load(Ordering::Relaxed) {
            break;
        }
        let own = stream.try_clone().unwrap();
        let seen = Arc::clone(seen);
        connections.push((stream, std::thread::spawn(move || serve(own, trouble, &seen))));
    }
    for (stream, thread) in connections {
        // The client may have closed it.
        stream.shutdown(Shutdown::Both).ok();
        thread.join().unwrap();
    }
}

struct Request {
    method: String,
    target: String,
    body: Vec<u8>,
}

/// `None` when the connection ends between requests.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    let mut length = 0;
    let mut has_host = false;
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut parts = line.trim_end().split(' ');
    let (method, target) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    assert_eq!(parts.next(), Some("HTTP/1.1"), "{line}");
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        has_host |= name == "Host";
        if name == "Content-Length" {
            length = value.parse().unwrap();
        }
    }
    assert!(has_host, "{line}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, body })
}

fn serve(mut stream: TcpStream, trouble: Trouble, seen: &Seen) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read_request(&mut reader) {
        seen.requests.fetch_add(1, Ordering::Relaxed);
        let response = match trouble {
            Trouble::Nothing => respond(&request, seen),
            Trouble::Always(status) => status_only(status),
            Trouble::Silence => continue,
            Trouble::Every(every) => match seen.trouble.fetch_add(1, Ordering::Relaxed) % every {
                0 => "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n".into(),
                1 => status_only("500 Failed"),
                2 => break,
                3 => {
                    respond(&request, seen);
                    break;
                }
                _ => respond(&request, seen),
            },
        };
        if stream.write_all(response.as_bytes()).is_err() {
            break;
        }
    }
    // The client may have closed it.
    stream.shutdown(Shutdown::Both).ok();
}

fn status_only(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
}

fn respond(request: &Request, seen: &Seen) -> String {
    let mut stored = seen.stored.lock().unwrap();
    let key = request.target.split(['=', '&']).nth(1).unwrap_or_default();
    match (request.method.as_str(), request.target.split('?').next().unwrap()) {
        ("GET", "/v0/status") => status_only("200 OK"),
        ("PUT", "/v0/entity") => {
            let entry = stored.entry(key.to_owned()).or_insert((0, 0));
            *entry = (request.body.len(), entry.1 + 1);
            status_only("201 Created")
        }
        ("GET", "/v0/entity") => match stored.get(key) {
            Some((length, _)) => format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}",
                "v".repeat(*length)
            ),
            None => status_only("404 Not Found"),
        },
        ("DELETE", "/v0/entity") => {
            stored.remove(key);
            status_only("202 Accepted")
        }
        ("GET", "/v0/entities") => {
            let limit: usize = request.target.split("limit=").nth(1).unwrap().parse().unwrap();
            let body: String = stored
                .range(key.to_owned()..)
                .take(limit)
                .map(|(key, _)| format!("{key}\n"))
                .collect();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        }
        _ => status_only("400 Bad Request"),
    }
}
