//! Many records at once: copies to and from other engines.
//!
//! Records are collected in a window. Those of one bucket are sent together, as a batch of one
//! partition, and the batches of a window at the same time, a bounded number of them. When all
//! are there, the last key of the window is the place where an interrupted copy goes on. The
//! keyspace itself has this place, in the table `copy_progress`, which exists as long as a copy
//! has not ended: whatever process goes on with the copy, on whatever machine, finds it beside the
//! records that it is about.
//!
//! Invariants:
//! 1. All records up to the stored place are written, by as many nodes as the settings say.
//! 2. All writes of an attempt have one time stamp, that of the start of the first attempt plus one
//!    microsecond for each attempt before. So records that clients write, or delete, after the
//!    start win over those of the copy; and an attempt wins over what the one before had in
//!    flight.

use crate::cluster::{Cluster, is_temporary};
use crate::errors::{self, Asked};
use crate::range::Range;
use crate::session::{Shared, unreadable};
use futures::{TryStreamExt, stream};
use kvant_base::{Error, Result};
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Keys and values of a window: some hundred rows for each bucket of a default keyspace, if short.
const WINDOW_BYTES: usize = 8 << 20;
const WINDOW_ROWS_MAX: usize = 1 << 16;
/// Keys and values of a batch, far from the 128 KiB of which nodes of ScyllaDB warn.
const BATCH_BYTES: usize = 32 << 10;
/// Batches that are sent at the same time.
const BATCHES_AT_ONCE: usize = 32;
/// Attempts at a batch that the cluster cannot take now, and the wait between them.
const ATTEMPTS_MAX: u32 = 10;
const ATTEMPT_INTERVAL: Duration = Duration::from_secs(1);

type Row = (i32, Vec<u8>, Vec<u8>, i64, i32);

/// A copy into a keyspace.
pub struct Loader {
    shared: Arc<Shared>,
    keyspace: String,
    stamp_us: i64,
    window: Vec<Row>,
    window_bytes: usize,
}

impl Loader {
    /// Begins a copy of the records of `from`, or goes on with it: then also returns the last key
    /// that needs no copying. Blocks.
    ///
    /// # Errors
    /// `Invalid`: the keyspace has records, or an unfinished copy of another place. And as of
    /// requests.
    pub fn open(
        cluster: &Cluster,
        keyspace: &str,
        from: &str,
    ) -> Result<(Loader, Option<Vec<u8>>)> {
        cluster.wait(Loader::open_later(cluster, keyspace, from))
    }

    async fn open_later(
        cluster: &Cluster,
        keyspace: &str,
        from: &str,
    ) -> Result<(Loader, Option<Vec<u8>>)> {
        let mut loader = Loader {
            shared: Arc::clone(cluster.shared()),
            keyspace: keyspace.to_string(),
            stamp_us: cluster.shared().next_stamp_us(),
            window: Vec::new(),
            window_bytes: 0,
        };
        let state = loader.shared.session.get_cluster_state();
        let tables = state.get_keyspace(keyspace).map(|found| &found.tables);
        if !tables.is_some_and(|tables| tables.contains_key("copy_progress")) {
            let mut records = cluster.range(b"\0", None, 1);
            records.fetch().await?;
            if records.take_next().is_some() {
                return Err(Error::invalid(format!("the keyspace `{keyspace}` has records")));
            }
            let columns = "name text PRIMARY KEY, source text, key blob, stamp_us bigint";
            let table = loader.table();
            loader.run(format!("CREATE TABLE IF NOT EXISTS {table} ({columns})"), ()).await?;
        }
        let Some((source, key, stamp_us)) = loader.stored().await? else {
            let insert = "(name, source, stamp_us) VALUES ('copy', ?, ?)";
            let insert = format!("INSERT INTO {} {insert}", loader.table());
            loader.run(insert, (from, loader.stamp_us)).await?;
            return Ok((loader, None));
        };
        if source != from {
            return Err(Error::invalid(format!(
                "the keyspace `{keyspace}` has a part of a copy of {source}: finish that copy, or \
                 drop the keyspace"
            )));
        }
        loader.stamp_us = stamp_us + 1;
        let update = format!("UPDATE {} SET stamp_us = ? WHERE name = 'copy'", loader.table());
        loader.run(update, (loader.stamp_us,)).await?;
        Ok((loader, key))
    }

    /// Adds a record, whose value has `ttl_s` left; `None`: it never expires. Keys ascend. Blocks
    /// when a window is full.
    ///
    /// # Errors
    /// The cluster does not take the records, after several attempts.
    pub fn put(
        &mut self,
        cluster: &Cluster,
        key: &[u8],
        value: &[u8],
        ttl_s: Option<u32>,
    ) -> Result<()> {
        // 0: never.
        let ttl_s = i32::try_from(ttl_s.unwrap_or(0))
            .map_err(|_| Error::invalid("too long a time to live"))?;
        let bucket = self.shared.bucket_of(key);
        self.window_bytes += key.len() + value.len();
        self.window.push((bucket, key.to_vec(), value.to_vec(), self.stamp_us, ttl_s));
        if self.window_bytes >= WINDOW_BYTES || self.window.len() >= WINDOW_ROWS_MAX {
            cluster.wait(self.write())?;
        }
        Ok(())
    }

    /// Writes what is left, and ends the copy. Blocks.
    ///
    /// # Errors
    /// As [`Loader::put`].
    pub fn finish(mut self, cluster: &Cluster) -> Result<()> {
        cluster.wait(async {
            self.write().await?;
            self.run(format!("DROP TABLE IF EXISTS {}", self.table()), ()).await
        })
    }

    /// Writes the window, and then the place.
    async fn write(&mut self) -> Result<()> {
        let window = std::mem::take(&mut self.window);
        self.window_bytes = 0;
        let Some(last_key) = window.last().map(|row| row.1.clone()) else { return Ok(()) };
        let mut buckets: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
        for row in window {
            buckets.entry(row.0).or_default().push(row);
        }
        let batches: Vec<Vec<Row>> = buckets.into_values().flat_map(batches).collect();
        let shared = &self.shared;
        stream::iter(batches.into_iter().map(Ok))
            .try_for_each_concurrent(BATCHES_AT_ONCE, |rows| async move {
                write_batch(shared, &rows).await
            })
            .await?;
        let update = format!("UPDATE {} SET key = ? WHERE name = 'copy'", self.table());
        self.run(update, (last_key,)).await
    }

    fn table(&self) -> String {
        format!("\"{}\".copy_progress", self.keyspace)
    }

    /// Source, last key and time stamp of the copy that has not ended.
    async fn stored(&self) -> Result<Option<(String, Option<Vec<u8>>, i64)>> {
        let select =
            format!("SELECT source, key, stamp_us FROM {} WHERE name = 'copy'", self.table());
        let found = self.shared.session.query_unpaged(select, ()).await;
        let rows = found.map_err(|error| errors::of_request(&error, Asked::Read, false))?;
        let rows = rows.into_rows_result().map_err(unreadable)?;
        rows.maybe_first_row().map_err(unreadable)
    }

    async fn run(&self, statement: String, values: impl SerializeRow) -> Result<()> {
        let done = self.shared.session.query_unpaged(statement, values).await;
        done.map(drop).map_err(|error| errors::of_request(&error, Asked::Write, true))
    }
}

/// The rows of a bucket in pieces of at most [`BATCH_BYTES`], or of one row.
fn batches(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut batches: Vec<Vec<Row>> = Vec::new();
    let mut bytes = usize::MAX;
    for row in rows {
        let row_bytes = row.1.len() + row.2.len();
        bytes = bytes.saturating_add(row_bytes);
        match batches.last_mut() {
            Some(batch) if bytes <= BATCH_BYTES => batch.push(row),
            _ => {
                bytes = row_bytes;
                batches.push(vec![row]);
            }
        }
    }
    batches
}

async fn write_batch(shared: &Shared, rows: &[Row]) -> Result<()> {
    let insert = &shared.statements(None)?.insert;
    let mut batch = Batch::new(BatchType::Unlogged);
    for _ in rows {
        batch.append_statement(insert.clone());
    }
    batch.set_consistency(shared.default_acks.consistency);
    batch.set_is_idempotent(true);
    patiently(async || {
        let done = shared.session.batch(&batch, rows).await;
        done.map(drop).map_err(|error| errors::of_request(&error, Asked::Write, true))
    })
    .await
}

/// Repeats an attempt that may succeed later.
async fn patiently(mut attempt: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt().await {
            Err(error) if is_temporary(error.kind()) => {
                tokio::time::sleep(ATTEMPT_INTERVAL).await;
            }
            done => return done,
        }
    }
    attempt().await
}

impl Cluster {
    /// As [`Range::fetch`], on this thread, with several attempts.
    ///
    /// # Errors
    /// As of a request for one record.
    pub fn fetch(&self, range: &mut Range) -> Result<()> {
        self.wait(patiently(async || range.fetch().await))
    }
}
