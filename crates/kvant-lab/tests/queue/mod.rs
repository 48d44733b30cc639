//! A server of known behaviour: one queue of all requests, with drawn service times.
//!
//! Invariants:
//! 1. A request is due at the later of its arrival and the time at which the one before it is due,
//!    plus its service time. A late thread delays a response, never the queue behind it.
//! 2. A request arrives when its head has been read.
//!
//! Threads: one accepts, each connection has one. They end with the process.

use kvant_env::Env;
use kvant_env::rng::Rng;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: queue/1\r\nContent-Length: 5\r\n\r\nhello";
/// Before a response is due its thread polls the clock: a sleeping thread wakes up late, by 10 us
/// on a calm machine with the least timer slack.
const SPIN: Duration = Duration::from_micros(20);

/// The distribution of service times.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Service {
    Constant,
    Exponential,
}

/// A request, with times of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) arrival_ns: u64,
    pub(crate) service_ns: u64,
    /// When its response was written.
    pub(crate) written_ns: u64,
}

/// A running server.
pub(crate) struct Queue {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    service: Service,
    mean_ns: f64,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    /// When the last request of the queue is due.
    last_due_ns: u64,
    served: Vec<Served>,
}

impl Queue {
    /// Listens on a port of this machine; 0 takes a free one.
    pub(crate) fn start(
        port: u16,
        service: Service,
        mean: Duration,
        seed: u64,
    ) -> io::Result<Queue> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let state = State { rng: Rng::new(seed), last_due_ns: 0, served: Vec::new() };
        let mean_ns = mean.as_nanos() as f64;
        let shared = Shared { env: Env::posix(), service, mean_ns, state: Mutex::new(state) };
        let shared = Arc::new(shared);
        let of_acceptor = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&of_acceptor);
                // A connection that fails is closed.
                std::thread::spawn(move || stream.and_then(|stream| shared.serve(stream)));
            }
        });
        Ok(Queue { address, shared })
    }

    /// The requests whose responses were written since the last call.
    pub(crate) fn take_served(&self) -> Vec<Served> {
        std::mem::take(&mut self.shared.lock().served)
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let mut unread = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            unread.extend_from_slice(&buffer[..count]);
            // Requests have no bodies.
            while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
                unread.drain(..end + 4);
                let (due_ns, mut served) = self.enqueue();
                self.wait_until(due_ns);
                stream.write_all(RESPONSE)?;
                served.written_ns = self.env.clock.monotonic_ns();
                self.lock().served.push(served);
            }
        }
    }

    /// Returns when the new request is due.
    fn enqueue(&self) -> (u64, Served) {
        let mut state = self.lock();
        // Under the lock: arrivals ascend in the order of the queue.
        let arrival_ns = self.env.clock.monotonic_ns();
        let service_ns = match self.service {
            Service::Constant => self.mean_ns,
            Service::Exponential => {
                // In (0, 1], with 53 random bits.
                let uniform = ((state.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                -self.mean_ns * uniform.ln()
            }
        } as u64;
        state.last_due_ns = state.last_due_ns.max(arrival_ns) + service_ns;
        (state.last_due_ns, Served { arrival_ns, service_ns, written_ns: 0 })
    }

    fn wait_until(&self, due_ns: u64) {
        loop {
            let left = due_ns.saturating_sub(self.env.clock.monotonic_ns());
            match Duration::from_nanos(left).checked_sub(SPIN) {
                _ if left == 0 => return,
                Some(sleep) if !sleep.is_zero() => std::thread::sleep(sleep),
                _ => std::hint::spin_loop(),
            }
        }
    }
}
