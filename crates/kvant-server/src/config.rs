//! Settings of the server, already parsed and checked one by one; [`ServerConfig::problems`] checks
//! them together.

use crate::affinity;
use crate::http::site;
use kvant_base::limits;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Which threads do the storage work of a request (`--dispatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchMode {
    /// The selector that read the request. A cold read holds up its other connections.
    Inline,
    /// Workers, behind a bounded queue.
    Pool,
    /// The selector where no disk is needed, else the workers.
    Hybrid,
}

/// What happens to requests beyond what the server can do (`--overload`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// The limit follows the measured latency; costly requests are refused before cheap ones.
    Adaptive,
    /// A request that finds the queue full is refused.
    Reject,
    /// The request that has waited longest is refused instead.
    DiscardOldest,
    /// The selector does the work itself.
    CallerRuns,
}

/// Settings of one server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address of the data plane, and of the operator API unless `admin_listen` is set. Port 0
    /// picks a free one.
    pub listen: SocketAddr,
    /// Address of a second listener that alone carries the operator API (`/v0/status` is on both).
    pub admin_listen: Option<SocketAddr>,
    /// Names under which clients reach the server, besides its addresses and `localhost`; without
    /// ports.
    pub allowed_hosts: Vec<String>,
    /// Event loops, one thread each; at least 1. Default: as many as this process has CPUs.
    pub selectors: usize,
    /// CPUs to which the selectors are bound, one each in turn; empty: none is bound.
    pub selector_cpus: Vec<usize>,
    /// Which threads do the storage work.
    pub dispatch: DispatchMode,
    /// Worker threads; at least 1.
    pub workers: usize,
    /// Requests that may wait for a worker.
    pub queue_capacity: usize,
    /// What happens beyond that.
    pub overload: Overload,
    /// Longest accepted value, in bytes: the same as the engine's setting.
    pub value_bytes_max: u64,
    /// Longest time that a request waits before its storage work: in the queue, for a stall to end,
    /// for memory; then `503`.
    pub queue_wait_max: Duration,
    /// Longest time that a reader may take nothing of a response before its connection is cut.
    pub range_idle_max: Duration,
    /// Longest time that a connection may be open without a request before it is closed.
    pub connection_idle_max: Duration,
    /// Longest time from the first byte of a request's head to its last.
    pub head_wait_max: Duration,
    /// Connections open at once, both listeners together, as far as there are descriptors for them.
    /// `None`: the descriptor limit, raised to the hard one, less 1,000, or less three quarters of
    /// it.
    pub connections_max: Option<usize>,
    /// Directory of the checkpoints that the operator API makes.
    pub checkpoints: PathBuf,
    /// How much of the past `/v0/history` shows; zero: nothing is recorded.
    pub history: Duration,
}

/// Most selectors, and most workers.
const THREAD_COUNT_MAX: usize = 1024;

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig::of_cpus(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl ServerConfig {
    /// The defaults on a machine with `cpu_count` CPUs.
    fn of_cpus(cpu_count: usize) -> ServerConfig {
        ServerConfig {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
            admin_listen: None,
            allowed_hosts: Vec::new(),
            selectors: cpu_count.clamp(1, THREAD_COUNT_MAX),
            selector_cpus: Vec::new(),
            dispatch: DispatchMode::Hybrid,
            workers: (2 * cpu_count).clamp(4, THREAD_COUNT_MAX),
            queue_capacity: 1024,
            overload: Overload::Adaptive,
            value_bytes_max: limits::VALUE_BYTES_MAX_DEFAULT,
            queue_wait_max: Duration::from_secs(1),
            range_idle_max: Duration::from_secs(30),
            connection_idle_max: Duration::from_secs(300),
            head_wait_max: Duration::from_secs(10),
            connections_max: None,
            checkpoints: PathBuf::from("checkpoints"),
            history: Duration::from_secs(600),
        }
    }

    /// The problems of these settings, a sentence each; empty when they are valid.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (count, what) in [(self.selectors, "selectors"), (self.workers, "workers")] {
            if !(1..=THREAD_COUNT_MAX).contains(&count) {
                problems.push(format!("{count} {what} are not within 1 and {THREAD_COUNT_MAX}"));
            }
        }
        problems
            .extend(self.allowed_hosts.iter().filter_map(|name| site::allowed_host_problem(name)));
        problems.extend(affinity::cpus_problem(&self.selector_cpus));
        if self.queue_capacity == 0 {
            problems.push("a queue for 0 requests would refuse all of them".into());
        }
        if self.value_bytes_max > limits::VALUE_BYTES_MAX_LIMIT {
            problems.push(format!(
                "values of {} bytes exceed the limit of {}",
                self.value_bytes_max,
                limits::VALUE_BYTES_MAX_LIMIT
            ));
        }
        if self.range_idle_max.is_zero() {
            problems.push("a range idle time of zero would cut every reader".into());
        }
        if self.connection_idle_max.is_zero() {
            problems.push("a connection idle time of zero would close every connection".into());
        }
        if self.head_wait_max.is_zero() {
            problems.push("a head wait of zero would refuse every request".into());
        }
        if self.connections_max == Some(0) {
            problems.push("a server for 0 connections serves no client".into());
        }
        if self.admin_listen.is_some_and(|admin| admin == self.listen && admin.port() != 0) {
            problems.push(format!("both listeners have the address {}", self.listen));
        }
        problems
    }
}

#[cfg(test)]
mod tests;
