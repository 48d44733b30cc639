//! Clients that read and write by quorum, each one request after the other, and what they saw.

use super::history::{KeyHistory, Outcome, Read, Time, Value, Write};
use crate::connection::{Connection, Response};
use kvant_env::rng::Rng;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENT_COUNT: u64 = 8;
pub(crate) const KEY_COUNT: u64 = 300;
/// Between two requests of a client.
const REST: Duration = Duration::from_millis(2);

/// The clock and the numbers of all requests of a test.
pub(crate) struct Course {
    begin: Instant,
    next_number: AtomicU64,
}

/// What one client saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) requests: Vec<Request>,
}

/// A request, whatever became of it.
pub(crate) struct Request {
    key: u64,
    /// `None`: a read.
    written: Option<Value>,
    pub(crate) begin: Time,
    pub(crate) end: Time,
    pub(crate) status: u16,
    read: Value,
    pub(crate) problem: String,
}

impl Course {
    pub(crate) fn new() -> Course {
        Course { begin: Instant::now(), next_number: AtomicU64::new(1) }
    }

    pub(crate) fn now(&self) -> Time {
        self.begin.elapsed().as_nanos() as Time
    }

    /// Lets all clients send requests until `director` returns.
    pub(crate) fn run<T>(
        &self,
        addr: SocketAddr,
        seed: u64,
        director: impl FnOnce() -> T,
    ) -> (Vec<Seen>, T) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENT_COUNT)
                .map(|client| {
                    let (rng, is_over) = (Rng::new(seed.wrapping_add(client)), &is_over);
                    scope.spawn(move || self.client(addr, rng, is_over))
                })
                .collect();
            // The clients end whether the director panics or not.
            let ender = Ender(&is_over);
            let directed = director();
            drop(ender);
            let seen = clients.into_iter().map(|client| client.join().expect("a client"));
            (seen.collect(), directed)
        })
    }

    fn client(&self, addr: SocketAddr, mut rng: Rng, is_over: &AtomicBool) -> Seen {
        let mut connection = Connection::open(addr).expect("the server listens");
        let mut seen = Seen::default();
        while !is_over.load(Ordering::Relaxed) {
            let key = rng.below(KEY_COUNT);
            let written = match rng.below(20) {
                0..9 => None,
                9 => Some(None),
                _ => Some(Some(self.next_number.fetch_add(1, Ordering::Relaxed))),
            };
            let begin = self.now();
            connection.send(&request(key, written)).expect("the server takes requests");
            let response = connection.receive().expect("every request gets a response");
            seen.requests.push(Request::ended(key, written, begin, self.now(), response));
            std::thread::sleep(REST);
        }
        seen
    }
}

struct Ender<'a>(&'a AtomicBool);

impl Drop for Ender<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn key(number: u64) -> String {
    format!("key-{number}")
}

fn request(number: u64, written: Option<Value>) -> Vec<u8> {
    let key = key(number);
    let head = |method: &str, body: &str| {
        let length = body.len();
        format!(
            "{method} /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    match written {
        None => format!("GET /v0/entity?id={key} HTTP/1.1\r\nHost: x\r\n\r\n"),
        Some(None) => head("DELETE", ""),
        Some(Some(number)) => head("PUT", &number.to_string()),
    }
    .into_bytes()
}

/// The number in a value.
pub(crate) fn number_in(value: &[u8]) -> u64 {
    let text = std::str::from_utf8(value).expect("values are numbers");
    text.parse().unwrap_or_else(|_| panic!("`{text}` was never written"))
}

impl Request {
    fn ended(
        key: u64,
        written: Option<Value>,
        begin: Time,
        end: Time,
        response: Response,
    ) -> Request {
        let Response { status, body } = response;
        let read = (status == 200).then(|| number_in(&body));
        let problem = match status {
            400.. if status != 404 => String::from_utf8_lossy(&body).into_owned(),
            _ => String::new(),
        };
        Request { key, written, begin, end, status, read, problem }
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.status >= 500
    }

    fn outcome(&self) -> Outcome {
        match self.status {
            201 | 202 => Outcome::Acknowledged,
            503 => Outcome::Refused,
            504 if self.problem.contains("nothing was done") => Outcome::Refused,
            504 => Outcome::Unknown,
            status => panic!("{status}: {}", self.problem),
        }
    }
}

/// The history of each key.
pub(crate) fn histories(seen: &[Seen]) -> Vec<KeyHistory> {
    let mut histories: Vec<KeyHistory> = (0..KEY_COUNT).map(|_| KeyHistory::default()).collect();
    for request in seen.iter().flat_map(|seen| &seen.requests) {
        let history = &mut histories[request.key as usize];
        let (begin, end) = (request.begin, request.end);
        match request.written {
            Some(value) => {
                history.writes.push(Write { value, begin, end, outcome: request.outcome() });
            }
            None if !request.is_failed() => {
                history.reads.push(Read { value: request.read, begin, end });
            }
            None => {}
        }
    }
    histories
}
