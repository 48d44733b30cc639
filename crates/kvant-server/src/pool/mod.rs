//! Workers that do what selectors should not wait for, behind a bounded queue (`--dispatch pool` and `hybrid`).
//!
//! `Port` (a selector's side: gathers what one turn of its event loop sends) -> `Queue` (who is let in, who is next) -> workers ->
//! `Inbox` -> `Port` (wakes who waits).
//!
//! Reads go before writes and writes before pieces of ranges, under every policy; within a class the oldest goes first.

mod port;
mod work;

pub(crate) use port::{Later, Port};
pub(crate) use work::{Done, Outcome, RangeWork, Unwritten, Work};

use crate::admission::{Class, Refusals};
use crate::config::{Overload, ServerConfig};
use crate::lifecycle::Lifecycle;
use kvant_env::{Clock, Env};
use std::sync::Arc;

/// Settings of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) workers: usize,
    /// Requests that may wait.
    pub(crate) queue_capacity: usize,
    pub(crate) overload: Overload,
    pub(crate) queue_wait_max_ns: u64,
}

impl From<&ServerConfig> for PoolConfig {
    fn from(config: &ServerConfig) -> PoolConfig {
        PoolConfig {
            workers: config.workers,
            queue_capacity: config.queue_capacity,
            overload: config.overload,
            queue_wait_max_ns: u64::try_from(config.queue_wait_max.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// Workers and their queue.
pub(crate) struct Pool {
    clock: Arc<dyn Clock>,
}

/// What a pool has done and does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolStats {
    pub(crate) worker_count: usize,
    pub(crate) busy_count: usize,
    /// Requests that wait, by class, and the most that ever waited together.
    pub(crate) queued: [usize; Class::COUNT],
    pub(crate) queued_max: usize,
    /// Requests that were done, by class.
    pub(crate) done: [u64; Class::COUNT],
    /// What a request costs a worker, by class, smoothed.
    pub(crate) cost_ns: [u64; Class::COUNT],
}

impl Pool {
    /// Starts the workers. Work may be sent as soon as the lifecycle has a store.
    pub(crate) fn start(
        _config: PoolConfig,
        env: &Env,
        _lifecycle: Arc<Lifecycle>,
        _refusals: Arc<Refusals>,
        _selectors: usize,
    ) -> Arc<Pool> {
        Arc::new(Pool {
            clock: Arc::clone(&env.clock),
        })
    }

    /// Refuses what is queued and what is still sent, and waits for the workers. A second call does nothing.
    pub(crate) fn stop(&self) {}

    pub(crate) fn stats(&self) -> PoolStats {
        PoolStats::default()
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }
}
