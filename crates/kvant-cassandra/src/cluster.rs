//! The engine: single records, and the session that all share.
//!
//! Invariant: values never expire early. The cluster counts whole seconds from the second in which
//! it received the write, so one is added.

use crate::figures::Stats;
use crate::options::Options;
use crate::range::Range;
use crate::session::{Shared, unreadable};
use bytes::Bytes;
use kvant_base::log::{Level, Log};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Clock;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Between two attempts to reach a cluster that is away at the start.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The outcome of a request, later.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// A keyspace of a cluster.
pub struct Cluster {
    shared: Arc<Shared>,
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
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("cluster")
            .enable_all()
            .build()
            .map_err(failed)?;
        loop {
            match runtime.block_on(Shared::open(options, clock)) {
                Ok(shared) => {
                    return Ok(Cluster { shared: Arc::new(shared), runtime: Some(runtime) });
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
        self.shared.default_acks.count
    }

    /// The newest value of `key` on `ack_count` nodes.
    pub fn get(&self, key: &[u8], ack_count: Option<u32>) -> Pending<Option<Bytes>> {
        let (shared, key) = (Arc::clone(&self.shared), Bytes::copy_from_slice(key));
        Box::pin(async move {
            let statement = &shared.statements(ack_count)?.select;
            let bucket = shared.bucket_of(&key);
            let result = shared.execute(statement, (bucket, key)).await?;
            let rows = result.into_rows_result().map_err(unreadable)?;
            let row = rows.maybe_first_row::<(Vec<u8>,)>().map_err(unreadable)?;
            Ok(row.map(|(value,)| Bytes::from(value)))
        })
    }

    /// Writes a value that expires after `ttl_ms`.
    pub fn put(
        &self,
        key: &[u8],
        value: Bytes,
        ttl_ms: Option<u64>,
        ack_count: Option<u32>,
    ) -> Pending<()> {
        let (shared, key) = (Arc::clone(&self.shared), Bytes::copy_from_slice(key));
        let stamp_us = shared.next_stamp_us();
        // 0: never.
        let ttl_s = ttl_ms.map_or(0, |ttl_ms| ttl_ms.div_ceil(1_000) + 1);
        Box::pin(async move {
            let ttl_s =
                i32::try_from(ttl_s).map_err(|_| Error::invalid("too long a time to live"))?;
            let statement = &shared.statements(ack_count)?.insert;
            let bucket = shared.bucket_of(&key);
            shared.execute(statement, (bucket, key, value, stamp_us, ttl_s)).await.map(drop)
        })
    }

    /// Deletes a value.
    pub fn delete(&self, key: &[u8], ack_count: Option<u32>) -> Pending<()> {
        let (shared, key) = (Arc::clone(&self.shared), Bytes::copy_from_slice(key));
        let stamp_us = shared.next_stamp_us();
        Box::pin(async move {
            let statement = &shared.statements(ack_count)?.delete;
            let bucket = shared.bucket_of(&key);
            shared.execute(statement, (stamp_us, bucket, key)).await.map(drop)
        })
    }

    /// Records with `start <= key`, and `key < end` where an end is given, of which `count_max`
    /// will be read at most.
    pub fn range(&self, start: &[u8], end: Option<&[u8]>, count_max: u64) -> Range {
        Range::new(Arc::clone(&self.shared), start, end, count_max)
    }

    /// All records from `start` on, with the time that they have left.
    pub fn scan(&self, start: &[u8]) -> Range {
        Range::with_ttl(Arc::clone(&self.shared), start)
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
        self.shared.figures.stats()
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
    matches!(kind, ErrorKind::Away | ErrorKind::NoAnswer | ErrorKind::TooFewReplicas { .. })
}
