//! The engine: single records, and the session that all share.
//!
//! Invariant: values never expire early. The cluster counts whole seconds from the second in which
//! it received the write, so one is added.

use crate::attempts::Course;
use crate::figures::{Figures, Kind, NodeStats};
use crate::options::Options;
use crate::own_connections;
use crate::range::Range;
use crate::second_reads::SecondReadStats;
use crate::session::{Shared, value_in};
use crate::traces::Trace;
use bytes::Bytes;
use kvant_base::log::{Level, Log};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{Clock, host};
use serde::Serialize;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Between two attempts to reach a cluster that is away at the start.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The outcome of a request, and how it has gone, later.
pub type Pending<T> = Pin<Box<dyn Future<Output = (Result<T>, Course)> + Send>>;

/// How a request is to be done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask {
    /// Nodes that have to answer; `None`: the default.
    pub ack_count: Option<u32>,
    /// Whether the cluster is to trace it: [`Cluster::trace`].
    pub is_traced: bool,
}

/// What the cluster has cost.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// By node, in the order of the first attempt.
    pub nodes: Vec<NodeStats>,
    /// Reads that were sent to a second node before the first had answered.
    pub second_reads: SecondReadStats,
}

/// A keyspace of a cluster.
pub struct Cluster {
    shared: Arc<Shared>,
    options: Arc<Options>,
    /// Has the driver's connections. `None` after the end.
    runtime: Option<Runtime>,
}

impl Cluster {
    /// Connects with the cluster, however long that takes: `waiting` is told each time why it is
    /// away. Blocks.
    ///
    /// # Errors
    /// Settings, credentials or keyspace are wrong: trying again would not help.
    pub fn open(
        options: &Options,
        clock: Arc<dyn Clock>,
        log: &Arc<dyn Log>,
        waiting: &dyn Fn(&Error),
    ) -> Result<Cluster> {
        Cluster::open_while(options, &clock, &|error| {
            waiting(error);
            log.event(Level::Warn, "cluster_away", &[("error", error)]);
            true
        })
    }

    /// Connects with the cluster at once. Blocks.
    ///
    /// # Errors
    /// As [`Cluster::open`], and where the cluster is away.
    pub fn open_now(options: &Options, clock: &Arc<dyn Clock>) -> Result<Cluster> {
        Cluster::open_while(options, clock, &|_| false)
    }

    /// Tries while the cluster is away and `waits` agrees.
    fn open_while(
        options: &Options,
        clock: &Arc<dyn Clock>,
        waits: &dyn Fn(&Error) -> bool,
    ) -> Result<Cluster> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("no runtime for the cluster's connections: {error}"))
        };
        let figures = Figures::new(Arc::clone(clock), options.limits_adapt);
        let runtime = Builder::new_multi_thread()
            .worker_threads((host::cpu_count() / 2).max(1))
            .thread_name("cluster")
            .enable_all()
            .build()
            .map_err(failed)?;
        loop {
            match runtime.block_on(Shared::open(options, clock, &figures)) {
                Ok(shared) => {
                    let (shared, options) = (Arc::new(shared), Arc::new(options.clone()));
                    return Ok(Cluster { shared, options, runtime: Some(runtime) });
                }
                Err(error) if is_temporary(error.kind()) && waits(&error) => {
                    runtime.block_on(tokio::time::sleep(RETRY_INTERVAL));
                }
                Err(error) => {
                    runtime.shutdown_background();
                    return Err(error);
                }
            }
        }
    }

    /// Keeps connections of the thread that awaits this: its requests use them until this is
    /// dropped, and those of the runtime of this crate until they are there. Never resolves; what
    /// fails is told to `log` and tried again.
    pub fn keep_own_connections(&self, log: Arc<dyn Log>) -> impl Future<Output = ()> + use<> {
        let (options, figures) = (Arc::clone(&self.options), Arc::clone(&self.shared.figures));
        async move {
            while let Err(error) = own_connections::keep(&options, Arc::clone(&figures)).await {
                log.event(Level::Warn, "cluster_connections_failed", &[("error", &error)]);
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }

    /// Waits for a request on this thread, which must not be one of a runtime.
    pub fn wait<T>(&self, request: impl Future<Output = T>) -> T {
        let runtime = self.runtime.as_ref().expect("the cluster has not been dropped");
        runtime.block_on(request)
    }

    /// Nodes that store each record.
    pub fn replica_count(&self) -> u32 {
        self.shared.schema.replica_count
    }

    /// Partitions.
    pub fn bucket_count(&self) -> u32 {
        self.shared.schema.bucket_count
    }

    /// Answers that a request waits for if it does not say.
    pub fn default_ack_count(&self) -> u32 {
        self.shared.statements.default_acks.count
    }

    /// The newest value of `key`.
    pub fn get(&self, key: &[u8], ask: Ask) -> Pending<Option<Bytes>> {
        let (shared, key) = (Arc::clone(&self.shared), Bytes::copy_from_slice(key));
        Box::pin(async move {
            let statements = match shared.statements.of_points(ask.ack_count) {
                Ok(statements) => statements,
                Err(error) => return (Err(error), Course::default()),
            };
            let execution = statements.execution(Kind::Read, ask.is_traced);
            let values = (shared.bucket_of(&key), key);
            let (result, course) = shared.execute(&statements.select, values, execution).await;
            (result.and_then(value_in), course)
        })
    }

    /// Writes a value that expires after `ttl_ms`.
    pub fn put(&self, key: &[u8], value: Bytes, ttl_ms: Option<u64>, ask: Ask) -> Pending<()> {
        let (shared, key) = (Arc::clone(&self.shared), Bytes::copy_from_slice(key));
        let stamp_us = shared.next_stamp_us();
        // 0: never.
        let ttl_s = ttl_ms.map_or(0, |ttl_ms| ttl_ms.div_ceil(1_000) + 1);
        Box::pin(async move {
            let ttl_s = i32::try_from(ttl_s).map_err(|_| Error::invalid("too long a time to live"));
            let (statements, ttl_s) = match (shared.statements.of_points(ask.ack_count), ttl_s) {
                (Ok(statements), Ok(ttl_s)) => (statements, ttl_s),
                (Err(error), _) | (_, Err(error)) => return (Err(error), Course::default()),
            };
            let execution = statements.execution(Kind::Write, ask.is_traced);
            let values = (shared.bucket_of(&key), key, value, stamp_us, ttl_s);
            let (result, course) = shared.execute(&statements.insert, values, execution).await;
            (result.map(drop), course)
        })
    }

    /// Deletes a value.
    pub fn delete(&self, key: &[u8], ask: Ask) -> Pending<()> {
        let (shared, key) = (Arc::clone(&self.shared), Bytes::copy_from_slice(key));
        let stamp_us = shared.next_stamp_us();
        Box::pin(async move {
            let statements = match shared.statements.of_points(ask.ack_count) {
                Ok(statements) => statements,
                Err(error) => return (Err(error), Course::default()),
            };
            let execution = statements.execution(Kind::Write, ask.is_traced);
            let values = (stamp_us, shared.bucket_of(&key), key);
            let (result, course) = shared.execute(&statements.delete, values, execution).await;
            (result.map(drop), course)
        })
    }

    /// The cluster's trace of a request, by the number that [`Course`] has, if the cluster has
    /// given it and it is one of the last.
    pub fn trace(&self, id: u128) -> Option<Trace> {
        self.shared.traces.get(id)
    }

    /// Records with `start <= key`, and `key < end` where an end is given, of which `count_max`
    /// will be read at most.
    pub fn range(&self, start: &[u8], end: Option<&[u8]>, count_max: u64) -> Range {
        Range::new(Arc::clone(&self.shared), start, end, count_max)
    }

    /// All records with `start <= key`, and `key < end` where an end is given, with the time at
    /// which they expire.
    pub fn scan(&self, start: &[u8], end: Option<&[u8]>) -> Range {
        Range::with_expiry(Arc::clone(&self.shared), start, end)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Nodes of the cluster: address, and whether there is a connection.
    pub fn nodes(&self) -> Vec<(String, bool)> {
        let state = self.shared.session.get_cluster_state();
        let nodes = state.get_nodes_info().iter();
        nodes.map(|node| (node.address.to_string(), node.is_connected())).collect()
    }

    /// What requests have cost so far.
    pub fn stats(&self) -> Stats {
        Stats { nodes: self.shared.figures.stats(), second_reads: self.shared.second_reads.stats() }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether the cluster may do it a moment later.
pub(crate) fn is_temporary(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Away
            | ErrorKind::NoAnswer
            | ErrorKind::Overloaded
            | ErrorKind::TooFewReplicas { .. }
    )
}
