//! What each node has cost, and what is in flight there.
//!
//! Threads: any. A known node is found without a lock; its gate has one.

use crate::gate::{Ending, Gate};
use arc_swap::ArcSwap;
use kvant_base::lock::NamedMutex;
use kvant_base::named_enum;
use kvant_env::Clock;
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Upper ends of the intervals of time, in microseconds; one more has the rest.
const UP_TO_US: [u64; 14] = [
    250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 125_000, 250_000, 500_000,
    1_000_000, 2_000_000,
];

named_enum! {
    /// What a request does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// Reads a record.
        Read = "read",
        /// Writes or deletes a record.
        Write = "write",
        /// Reads records of one bucket or several, for a range.
        Page = "page",
    }
}

named_enum! {
    /// The parts of a request's time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Phase {
        /// Until the attempt that was answered was sent: for a connection, and in attempts that
        /// failed.
        Before = "before",
        /// From there to the answer.
        Attempt = "attempt",
    }
}

pub(crate) struct Figures {
    pub(crate) clock: Arc<dyn Clock>,
    limits_adapt: bool,
    nodes: ArcSwap<Vec<Arc<Node>>>,
    /// Notified when a node that had no room may have some.
    pub(crate) room: Notify,
}

/// A node, known by its address: the driver's connections with it may have several ports.
pub(crate) struct Node {
    addr: SocketAddr,
    gate: NamedMutex<Gate>,
    times: [[Times; Phase::ALL.len()]; Kind::ALL.len()],
    pub(crate) error_count: AtomicU64,
    pub(crate) retry_count: AtomicU64,
    pub(crate) timeout_count: AtomicU64,
    pub(crate) replica_timeout_count: AtomicU64,
    pub(crate) second_read_count: AtomicU64,
    pub(crate) second_read_won_count: AtomicU64,
    skip_count: AtomicU64,
}

#[derive(Default)]
struct Times {
    counts: [AtomicU64; UP_TO_US.len() + 1],
    total_us: AtomicU64,
}

/// Attempts at one node since the start.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStats {
    /// Where its connections go.
    pub addr: SocketAddr,
    /// Attempts in flight.
    pub in_flight: u32,
    /// The most that may be in flight now.
    pub in_flight_limit: u32,
    /// How often it was passed over because it had no room, or was silent.
    pub skip_count: u64,
    /// Attempts that failed.
    pub error_count: u64,
    /// Of these, followed by another attempt.
    pub retry_count: u64,
    /// Attempts that had no answer when the request's longest time had passed.
    pub timeout_count: u64,
    /// Attempts that the node has answered with a time-out of the nodes that store the record.
    pub replica_timeout_count: u64,
    /// Second reads that were sent here, and those of them that were answered first.
    pub second_read_count: u64,
    /// See above.
    pub second_read_won_count: u64,
    /// The times of attempts that were answered, by the request's kind and phase.
    pub times: Vec<PhaseStats>,
}

/// Times of one kind and phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseStats {
    /// [`Kind`], by name.
    pub kind: &'static str,
    /// [`Phase`], by name.
    pub phase: &'static str,
    /// Pairs of the longest time of an interval, in microseconds, and the count; the last has the
    /// rest.
    pub counts_up_to_us: Vec<(Option<u64>, u64)>,
    /// Microseconds of all of them.
    pub total_us: u64,
}

impl Figures {
    pub(crate) fn new(clock: Arc<dyn Clock>, limits_adapt: bool) -> Arc<Figures> {
        let (nodes, room) = (ArcSwap::default(), Notify::new());
        Arc::new(Figures { clock, limits_adapt, nodes, room })
    }

    /// By node, in the order of the first attempt.
    pub(crate) fn stats(&self) -> Vec<NodeStats> {
        self.nodes.load().iter().map(|node| node.stats()).collect()
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    /// The node, if it was asked before.
    pub(crate) fn known(&self, ip: IpAddr) -> Option<Arc<Node>> {
        self.nodes.load().iter().find(|node| node.addr.ip() == ip).cloned()
    }

    pub(crate) fn node(&self, addr: SocketAddr) -> Arc<Node> {
        loop {
            if let Some(node) = self.known(addr.ip()) {
                return node;
            }
            self.nodes.rcu(|nodes| {
                let mut nodes = Vec::clone(nodes);
                if !nodes.iter().any(|node| node.addr.ip() == addr.ip()) {
                    nodes.push(Arc::new(Node::new(addr, self.limits_adapt)));
                }
                nodes
            });
        }
    }

    /// Notes that the node was passed over.
    pub(crate) fn note_skip(&self, ip: IpAddr) {
        if let Some(node) = self.known(ip) {
            node.skip_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes the end of an attempt at `node`.
    pub(crate) fn end(&self, node: &Node, is_measured: bool, ending: Ending, begin_ns: u64) {
        let now_ns = self.now_ns();
        let had_room = {
            let mut gate = node.gate.lock();
            let had_room = gate.has_room();
            gate.end(is_measured, ending, begin_ns, now_ns);
            had_room
        };
        if !had_room {
            self.room.notify_waiters();
        }
    }
}

impl Node {
    fn new(addr: SocketAddr, limit_adapts: bool) -> Node {
        Node {
            addr,
            gate: NamedMutex::new("cluster_node", Gate::new(limit_adapts)),
            times: Default::default(),
            error_count: AtomicU64::new(0),
            retry_count: AtomicU64::new(0),
            timeout_count: AtomicU64::new(0),
            replica_timeout_count: AtomicU64::new(0),
            second_read_count: AtomicU64::new(0),
            second_read_won_count: AtomicU64::new(0),
            skip_count: AtomicU64::new(0),
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn begin(&self, is_measured: bool, now_ns: u64) {
        self.gate.lock().begin(is_measured, now_ns);
    }

    /// Whether it has room, whether it is silent, and what is in flight.
    pub(crate) fn load(&self, now_ns: u64) -> Load {
        let gate = self.gate.lock();
        Load {
            is_full: !gate.has_room(),
            is_silent: gate.is_silent(now_ns),
            in_flight: gate.in_flight(),
        }
    }

    pub(crate) fn note_time(&self, kind: Kind, phase: Phase, time_us: u64) {
        let times = &self.times[kind as usize][phase as usize];
        let interval = UP_TO_US.partition_point(|&end_us| end_us < time_us);
        times.counts[interval].fetch_add(1, Ordering::Relaxed);
        times.total_us.fetch_add(time_us, Ordering::Relaxed);
    }

    fn stats(&self) -> NodeStats {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let of_all = Kind::ALL.into_iter().flat_map(|kind| Phase::ALL.map(|phase| (kind, phase)));
        let times = of_all.map(|(kind, phase)| {
            let times = &self.times[kind as usize][phase as usize];
            let ends = UP_TO_US.iter().copied().map(Some).chain([None]);
            PhaseStats {
                kind: kind.name(),
                phase: phase.name(),
                counts_up_to_us: ends.zip(times.counts.iter().map(load)).collect(),
                total_us: load(&times.total_us),
            }
        });
        let (in_flight, in_flight_limit) = {
            let gate = self.gate.lock();
            (gate.in_flight(), gate.limit())
        };
        NodeStats {
            addr: self.addr,
            in_flight,
            in_flight_limit,
            skip_count: load(&self.skip_count),
            error_count: load(&self.error_count),
            retry_count: load(&self.retry_count),
            timeout_count: load(&self.timeout_count),
            replica_timeout_count: load(&self.replica_timeout_count),
            second_read_count: load(&self.second_read_count),
            second_read_won_count: load(&self.second_read_won_count),
            times: times.collect(),
        }
    }
}

/// What speaks against sending a request to a node, the worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Load {
    pub(crate) is_full: bool,
    pub(crate) is_silent: bool,
    pub(crate) in_flight: u32,
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}
