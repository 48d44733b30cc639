//! Workers that do what selectors should not wait for, behind a bounded queue (`--dispatch pool`
//! and `hybrid`).
//!
//! `Port` (a selector's side: gathers what one turn of its event loop sends) -> `Queue` (admits
//! jobs and orders them) -> `Worker` -> `Inbox` -> `Port` (wakes the futures that wait). Both
//! hand-overs take many jobs at once: one lock, one wake-up.
//!
//! Reads go before writes and writes before pieces of ranges, under every policy; within a class
//! the oldest goes first.
//!
//! Threads: ports belong to selectors, workers to their own threads; the queue and the idle workers
//! are under one lock, which no thread holds while storage is at work or while it wakes another.

mod inbox;
mod port;
mod queue;
mod shared;
mod slots;
mod work;
mod worker;

pub(in crate::work) use port::Later;
pub(crate) use port::Port;
pub(crate) use queue::PoolStats;
pub(in crate::work) use queue::capacity_of;
pub(crate) use shared::Pool;
pub(in crate::work) use work::{Done, GetRequest, PoolReply};

use crate::admission::Refusals;
use crate::config::ServerConfig;
use crate::work::lifecycle::Lifecycle;
use inbox::Inbox;
use kvant_base::lock::NamedMutex;
use kvant_env::Env;
use queue::Queue;
use shared::State;
use std::sync::{Arc, OnceLock};
use worker::Worker;

impl Pool {
    /// Starts the workers. Work is for when the lifecycle has a store.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    pub(crate) fn start(
        config: Arc<ServerConfig>,
        env: &Env,
        lifecycle: Arc<Lifecycle>,
        refusals: Arc<Refusals>,
        selectors: usize,
    ) -> Arc<Pool> {
        let pool = Arc::new(Pool {
            config: Arc::clone(&config),
            clock: Arc::clone(&env.clock),
            lifecycle,
            inboxes: (0..selectors).map(|_| Inbox::new()).collect(),
            refusals,
            workers: OnceLock::new(),
            state: NamedMutex::new(
                "pool",
                State {
                    queue: Queue::new(Arc::clone(&config)),
                    idle: Vec::with_capacity(config.workers),
                    hand_over_count: 0,
                    wake_count: 0,
                },
            ),
        });
        let spawn = |index| env.spawner.spawn(Arc::new(Worker::new(&pool, index)));
        let workers = (0..config.workers).map(spawn).collect();
        pool.workers.get_or_init(|| workers);
        pool
    }
}

#[cfg(test)]
mod tests;
