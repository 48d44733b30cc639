//! Clients that write until their server ends, and check the records of its successor.

use crate::connection::Connection;
use crate::ledger::{Ledger, Records};
use crate::server_process::TestServer;
use kvant_env::testing::entropy_seed;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

const CLIENTS: u64 = 6;
/// Most requests that a client pipelines before it reads responses.
const PIPELINED_MAX: u64 = 8;
/// Longest wait for one acknowledgement, so that a hanging server fails its test.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The seed of a random test: `KVANT_TEST_SEED`, or a new one. Printed, so that a failure can be
/// replayed.
pub(crate) fn seed(test: &str) -> u64 {
    let seed = number("KVANT_TEST_SEED").unwrap_or_else(entropy_seed);
    println!("{test}: replay with KVANT_TEST_SEED={seed}");
    seed
}

/// Clients, each with its own keys.
pub(crate) struct Clients(Vec<Ledger>);

/// When a server ends, and what else happens until then.
pub(crate) struct Plan {
    /// Acknowledged writes to wait for.
    pub(crate) writes: u64,
    /// Time to wait after that.
    pub(crate) delay: Duration,
    /// Whether an operator flushes and compacts continuously.
    pub(crate) operator: bool,
}

/// Requests without a response, and how many of them the next server has.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) records: usize,
    pub(crate) pending: usize,
    pub(crate) performed: usize,
}

impl Clients {
    pub(crate) fn new(seed: u64) -> Clients {
        Clients((0..CLIENTS).map(|client| Ledger::new(client, seed.wrapping_add(client))).collect())
    }

    /// Lets all clients write concurrently until `end` ends the server as planned; they stop when
    /// their connections break. Returns the number of acknowledged writes and the result of `end`.
    pub(crate) fn write_until<T>(
        &mut self,
        server: TestServer,
        plan: &Plan,
        end: impl FnOnce(TestServer) -> T,
    ) -> (u64, T) {
        let addr = server.addr();
        let is_ending = AtomicBool::new(false);
        let (sender, acknowledged) = mpsc::channel();
        std::thread::scope(|scope| {
            // Owned here: a panic below ends the server, and so the clients that the scope joins.
            let server = server;
            for ledger in &mut self.0 {
                let (sender, is_ending) = (sender.clone(), &is_ending);
                scope.spawn(move || until_ended(is_ending, || write(ledger, addr, &sender)));
            }
            drop(sender);
            if plan.operator {
                scope.spawn(|| until_ended(&is_ending, || flush_and_compact(addr)));
            }
            for _ in 0..plan.writes {
                acknowledged.recv_timeout(WAIT_MAX).expect("writes are acknowledged");
            }
            std::thread::sleep(plan.delay);
            is_ending.store(true, Ordering::SeqCst);
            let ended = end(server);
            (plan.writes + acknowledged.iter().count() as u64, ended)
        })
    }

    /// Checks that `server` has exactly the expected records, in a full range and under each key.
    pub(crate) fn check(&mut self, server: &TestServer) -> Found {
        let mut connection = Connection::open(server.addr()).expect("the server listens");
        let records = connection.all_records().expect("a whole range");
        assert!(
            records.is_sorted_by(|(a, _), (b, _)| a < b),
            "a range is in order and has no key twice"
        );
        let mut found = Found { records: records.len(), ..Found::default() };
        let mut records: Records = records.into_iter().collect();
        for ledger in &mut self.0 {
            let (pending, performed) = ledger.reconcile(&mut records);
            found.pending += pending;
            found.performed += performed;
        }
        let strangers: Vec<_> = records.keys().map(|key| String::from_utf8_lossy(key)).collect();
        assert!(strangers.is_empty(), "no client wrote {strangers:?}");
        for ledger in &mut self.0 {
            get_all(ledger, &mut connection).expect("a response for every key");
        }
        found
    }
}

/// Does `work` until the connection breaks, which must not happen before the server ends.
fn until_ended(is_ending: &AtomicBool, work: impl FnOnce() -> io::Result<Infallible>) {
    let Err(error) = work();
    let is_ending = is_ending.load(Ordering::SeqCst);
    assert!(is_ending, "the server ended a connection: {error}");
}

fn write(
    ledger: &mut Ledger,
    addr: SocketAddr,
    acknowledged: &Sender<()>,
) -> io::Result<Infallible> {
    let mut connection = Connection::open(addr)?;
    loop {
        let (requests, count) = ledger.send_some(PIPELINED_MAX);
        connection.send(&requests)?;
        for _ in 0..count {
            if ledger.take_response(&connection.receive()?) {
                acknowledged.send(()).expect("somebody counts");
            }
        }
    }
}

fn flush_and_compact(addr: SocketAddr) -> io::Result<Infallible> {
    let mut connection = Connection::open(addr)?;
    loop {
        for operation in ["flush", "flush", "flush", "compact"] {
            let head = format!(
                "POST /v0/admin/{operation} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            );
            connection.send(head.as_bytes())?;
            let response = connection.receive()?;
            let text = String::from_utf8_lossy(&response.body);
            assert!([200, 503].contains(&response.status), "{operation}: {text}");
        }
    }
}

fn get_all(ledger: &mut Ledger, connection: &mut Connection) -> io::Result<()> {
    let requests: Vec<Vec<u8>> = ledger.get_all().collect();
    for some in requests.chunks(PIPELINED_MAX as usize) {
        connection.send(&some.concat())?;
        for _ in some {
            let response = connection.receive()?;
            assert_ne!(response.status, 503, "nothing stalls a read");
            ledger.take_response(&response);
        }
    }
    Ok(())
}
