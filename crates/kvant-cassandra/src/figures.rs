//! What each node has cost: attempts by their time, and why they failed.
//!
//! Threads: any. Attempts at a known node take no lock.

use arc_swap::ArcSwap;
use kvant_env::Clock;
use scylla::errors::{RequestAttemptError, RequestError};
use scylla::observability::history::{AttemptId, HistoryListener, RequestId, SpeculativeId};
use scylla::policies::retry::RetryDecision;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Upper ends of the intervals of time, in microseconds; one more has the rest.
const UP_TO_US: [u64; 14] = [
    250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 125_000, 250_000, 500_000,
    1_000_000, 2_000_000,
];

/// The driver's number of an attempt has the time of its start above these bits.
const NODE_BITS: u32 = 12;

pub(crate) struct Figures {
    clock: Arc<dyn Clock>,
    nodes: ArcSwap<Vec<Arc<Node>>>,
    speculative_count: AtomicU64,
}

struct Node {
    addr: SocketAddr,
    counts_by_time: [AtomicU64; UP_TO_US.len() + 1],
    total_us: AtomicU64,
    error_count: AtomicU64,
    retry_count: AtomicU64,
}

/// What the cluster has cost.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// By node, in the order of the first attempt.
    pub nodes: Vec<NodeStats>,
    /// Second attempts that were begun before the first had ended.
    pub speculative_count: u64,
}

/// Attempts at one node since the start.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStats {
    /// Where its connections go.
    pub addr: SocketAddr,
    /// Attempts that succeeded, by their time: pairs of the longest time, in microseconds, and the
    /// count; the last has the rest.
    pub counts_up_to_us: Vec<(Option<u64>, u64)>,
    /// Microseconds of all of them.
    pub total_us: u64,
    /// Attempts that failed.
    pub error_count: u64,
    /// Of these, followed by another attempt.
    pub retry_count: u64,
}

impl Figures {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Figures> {
        let nodes = ArcSwap::default();
        Arc::new(Figures { clock, nodes, speculative_count: AtomicU64::new(0) })
    }

    pub(crate) fn stats(&self) -> Stats {
        let nodes = self.nodes.load();
        Stats {
            nodes: nodes.iter().map(|node| node.stats()).collect(),
            speculative_count: self.speculative_count.load(Ordering::Relaxed),
        }
    }

    fn now_us(&self) -> u64 {
        self.clock.monotonic_ns() / 1_000
    }

    fn node_index(&self, addr: SocketAddr) -> usize {
        let position = |nodes: &[Arc<Node>]| nodes.iter().position(|node| node.addr == addr);
        loop {
            if let Some(index) = position(&self.nodes.load()) {
                return index;
            }
            self.nodes.rcu(|nodes| {
                let mut nodes = Vec::clone(nodes);
                if position(&nodes).is_none() {
                    nodes.push(Arc::new(Node::new(addr)));
                }
                nodes
            });
        }
    }

    /// The node of an attempt, and the microseconds since its start.
    fn attempt(&self, id: AttemptId) -> Option<(Arc<Node>, u64)> {
        let (start_us, index) = (id.0 >> NODE_BITS, id.0 & ((1 << NODE_BITS) - 1));
        let node = self.nodes.load().get(index).cloned()?;
        Some((node, self.now_us().saturating_sub(start_us as u64)))
    }
}

impl Node {
    fn new(addr: SocketAddr) -> Node {
        Node {
            addr,
            counts_by_time: Default::default(),
            total_us: AtomicU64::new(0),
            error_count: AtomicU64::new(0),
            retry_count: AtomicU64::new(0),
        }
    }

    fn stats(&self) -> NodeStats {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let ends = UP_TO_US.iter().copied().map(Some).chain([None]);
        NodeStats {
            addr: self.addr,
            counts_up_to_us: ends.zip(self.counts_by_time.iter().map(load)).collect(),
            total_us: load(&self.total_us),
            error_count: load(&self.error_count),
            retry_count: load(&self.retry_count),
        }
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}

impl HistoryListener for Figures {
    fn log_request_start(&self) -> RequestId {
        RequestId(0)
    }

    fn log_request_success(&self, _request_id: RequestId) {}

    fn log_request_error(&self, _request_id: RequestId, _error: &RequestError) {}

    fn log_new_speculative_fiber(&self, _request_id: RequestId) -> SpeculativeId {
        self.speculative_count.fetch_add(1, Ordering::Relaxed);
        SpeculativeId(0)
    }

    fn log_attempt_start(
        &self,
        _request_id: RequestId,
        _speculative_id: Option<SpeculativeId>,
        node_addr: SocketAddr,
    ) -> AttemptId {
        let index = self.node_index(node_addr);
        AttemptId((self.now_us() as usize) << NODE_BITS | index)
    }

    fn log_attempt_success(&self, attempt_id: AttemptId) {
        let Some((node, time_us)) = self.attempt(attempt_id) else { return };
        let interval = UP_TO_US.partition_point(|&end_us| end_us < time_us);
        node.counts_by_time[interval].fetch_add(1, Ordering::Relaxed);
        node.total_us.fetch_add(time_us, Ordering::Relaxed);
    }

    fn log_attempt_error(
        &self,
        attempt_id: AttemptId,
        _error: &RequestAttemptError,
        decision: &RetryDecision,
    ) {
        let Some((node, _)) = self.attempt(attempt_id) else { return };
        node.error_count.fetch_add(1, Ordering::Relaxed);
        let is_retried = matches!(
            decision,
            RetryDecision::RetrySameTarget(_) | RetryDecision::RetryNextTarget(_)
        );
        node.retry_count.fetch_add(is_retried.into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
