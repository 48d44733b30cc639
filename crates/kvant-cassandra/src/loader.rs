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
//! 3. An attempt begins with no record behind the place: what the one before wrote there, the
//!    source may have lost since.

use crate::cluster::{Cluster, is_temporary};
use crate::errors::{self, Asked};
use crate::range::{self, Range};
use crate::schema::of_keyspace;
use crate::session::{Shared, bucket_number, unreadable};
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use kvant_base::{Error, Result};
use scylla::errors::ExecutionError;
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
/// Batches, or deletes of buckets, that are sent at the same time.
const WRITES_AT_ONCE: usize = 32;
/// Attempts at a batch that the cluster cannot take now, and the wait between them.
const ATTEMPTS_MAX: u32 = 10;
const ATTEMPT_INTERVAL: Duration = Duration::from_secs(1);

struct Row {
    bucket: i32,
    key: Vec<u8>,
    value: Vec<u8>,
    /// In wall milliseconds since 1970; `None`: never.
    expires_at_ms: Option<u64>,
}

/// The values of a row's INSERT: bucket, key, value, time stamp in microseconds, and seconds to
/// live (0: it never expires).
type Values<'a> = (i32, &'a [u8], &'a [u8], i64, i32);

impl Row {
    fn bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }

    /// `None`: it has expired.
    fn values(&self, stamp_us: i64, now_ms: u64) -> Option<Values<'_>> {
        let ttl_s = match self.expires_at_ms {
            None => 0,
            Some(expires_at_ms) => {
                let left_ms = expires_at_ms.checked_sub(now_ms).filter(|&left_ms| left_ms > 0)?;
                // The cluster counts from the second in which it receives the write.
                i32::try_from(left_ms.div_ceil(1_000) + 1).unwrap_or(i32::MAX)
            }
        };
        Some((self.bucket, &self.key, &self.value, stamp_us, ttl_s))
    }
}

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
        let stored = match tables.is_some_and(|tables| tables.contains_key("copy_progress")) {
            true => loader.stored().await?,
            false => None,
        };
        let Some((source, key, stamp_us)) = stored else {
            // Also where an attempt ended between the two statements below.
            let mut records = cluster.range(b"\0", None, 1);
            patiently(async || records.fetch().await).await?;
            if records.take_next().is_some() {
                return Err(Error::invalid(format!("the keyspace `{keyspace}` has records")));
            }
            let columns = "name text PRIMARY KEY, source text, key blob, stamp_us bigint";
            let table = loader.table();
            loader.run(format!("CREATE TABLE IF NOT EXISTS {table} ({columns})"), ()).await?;
            let insert = "(name, source, stamp_us) VALUES ('copy', ?, ?)";
            loader.run(format!("INSERT INTO {table} {insert}"), (from, loader.stamp_us)).await?;
            return Ok((loader, None));
        };
        if source != from {
            return Err(Error::invalid(format!(
                "the keyspace `{keyspace}` has a part of a copy of {source}: finish that copy, or \
                 drop the keyspace"
            )));
        }
        loader.stamp_us = stamp_us + 1;
        // The place, too: the attempt before may have left a later one on its way.
        let update = "SET stamp_us = ?, key = ? WHERE name = 'copy'";
        let update = format!("UPDATE {} {update}", loader.table());
        loader.run(update, (loader.stamp_us, &key)).await?;
        loader.remove_behind(key.as_deref(), stamp_us).await?;
        Ok((loader, key))
    }

    /// Removes what attempts up to that of `stamp_us` have written behind the place.
    async fn remove_behind(&self, place: Option<&[u8]>, stamp_us: i64) -> Result<()> {
        let shared = &self.shared;
        let delete = "USING TIMESTAMP ? WHERE bucket = ? AND key >= ?";
        let delete = format!("DELETE FROM \"{}\".entity {delete}", self.keyspace);
        let mut delete = patiently(async || {
            let prepared = shared.session.prepare(delete.as_str()).await;
            prepared.map_err(|error| {
                errors::of_request(&ExecutionError::PrepareError(error), Asked::Write, false)
            })
        })
        .await?;
        delete.set_consistency(shared.statements.default_acks.consistency);
        delete.set_is_idempotent(true);
        let from = &place.map_or(Bytes::from_static(b"\0"), range::behind);
        let delete = &delete;
        let buckets = (0..shared.schema.bucket_count as usize).map(bucket_number);
        stream::iter(buckets.map(Ok))
            .try_for_each_concurrent(WRITES_AT_ONCE, |bucket| async move {
                let values = (stamp_us, bucket, from);
                patiently(async || {
                    let done = shared.session.execute_unpaged(delete, values).await;
                    done.map(drop).map_err(|error| errors::of_request(&error, Asked::Write, true))
                })
                .await
            })
            .await
    }

    /// Adds a record, which expires at `expires_at_ms`, in wall milliseconds since 1970; `None`:
    /// never. Keys ascend. Blocks when a window is full.
    ///
    /// # Errors
    /// The cluster does not take the records, after several attempts.
    pub fn put(
        &mut self,
        cluster: &Cluster,
        key: &[u8],
        value: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        let bucket = self.shared.bucket_of(key);
        let row = Row { bucket, key: key.to_vec(), value: value.to_vec(), expires_at_ms };
        self.window_bytes += row.bytes();
        self.window.push(row);
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
        let Some(last_key) = window.last().map(|row| row.key.clone()) else { return Ok(()) };
        let mut buckets: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
        for row in window {
            buckets.entry(row.bucket).or_default().push(row);
        }
        let batches: Vec<Vec<Row>> = buckets.into_values().flat_map(batches).collect();
        stream::iter(batches.into_iter().map(Ok))
            .try_for_each_concurrent(WRITES_AT_ONCE, |rows| self.write_batch(rows))
            .await?;
        let update = format!("UPDATE {} SET key = ? WHERE name = 'copy'", self.table());
        self.run(update, (last_key,)).await
    }

    async fn write_batch(&self, rows: Vec<Row>) -> Result<()> {
        let shared = &self.shared;
        let insert = &shared.statements.of_points(None)?.insert;
        patiently(async || {
            // With each attempt records have less time left.
            let now_ms = shared.wall_ms();
            let values = rows.iter().filter_map(|row| row.values(self.stamp_us, now_ms));
            let values: Vec<Values<'_>> = values.collect();
            if values.is_empty() {
                return Ok(());
            }
            let mut batch = Batch::new(BatchType::Unlogged);
            for _ in &values {
                batch.append_statement(insert.clone());
            }
            batch.set_consistency(shared.statements.default_acks.consistency);
            batch.set_is_idempotent(true);
            let done = shared.session.batch(&batch, values).await;
            done.map(drop).map_err(|error| errors::of_request(&error, Asked::Write, true))
        })
        .await
    }

    fn table(&self) -> String {
        format!("\"{}\".copy_progress", self.keyspace)
    }

    /// Source, last key and time stamp of the copy that has not ended.
    async fn stored(&self) -> Result<Option<(String, Option<Vec<u8>>, i64)>> {
        let select =
            format!("SELECT source, key, stamp_us FROM {} WHERE name = 'copy'", self.table());
        let select = of_keyspace(select);
        let rows = patiently(async || {
            let found = self.shared.session.query_unpaged(select.clone(), ()).await;
            found.map_err(|error| errors::of_request(&error, Asked::Read, false))
        })
        .await?;
        let rows = rows.into_rows_result().map_err(unreadable)?;
        rows.maybe_first_row().map_err(unreadable)
    }

    /// Runs a statement that may be repeated.
    async fn run(&self, statement: String, values: impl SerializeRow) -> Result<()> {
        let statement = of_keyspace(statement);
        patiently(async || {
            let done = self.shared.session.query_unpaged(statement.clone(), &values).await;
            done.map(drop).map_err(|error| errors::of_request(&error, Asked::Write, true))
        })
        .await
    }
}

/// The rows of a bucket in pieces of at most [`BATCH_BYTES`], or of one row.
fn batches(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut batches: Vec<Vec<Row>> = Vec::new();
    let mut bytes = usize::MAX;
    for row in rows {
        let row_bytes = row.bytes();
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

/// Repeats an attempt that may succeed later.
async fn patiently<T>(mut attempt: impl AsyncFnMut() -> Result<T>) -> Result<T> {
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
