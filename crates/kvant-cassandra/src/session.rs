//! What all requests share: the driver's session, prepared statements, time stamps.
//!
//! Invariant: a write has a time stamp of this process, later than those of all writes before it,
//! from the moment when it is accepted: however often and in whatever order attempts arrive, the
//! last write accepted wins. Between writes of two processes their clocks decide, which count
//! milliseconds here.

use crate::connect;
use crate::consistency::{Acks, acks};
use crate::errors;
use crate::figures::Figures;
use crate::options::Options;
use crate::schema::{self, Schema};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Clock;
use scylla::client::session::Session;
use scylla::errors::{ExecutionError, PrepareError};
use scylla::observability::history::HistoryListener;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use twox_hash::XxHash3_64;

/// What requests need.
pub(crate) struct Shared {
    pub(crate) session: Session,
    pub(crate) schema: Schema,
    pub(crate) default_acks: Acks,
    /// By the count of answers, from 1.
    statements: Vec<Statements>,
    pub(crate) select_range: PreparedStatement,
    pub(crate) select_range_to: PreparedStatement,
    pub(crate) select_keys: PreparedStatement,
    pub(crate) select_keys_to: PreparedStatement,
    /// With the seconds that the value has left.
    pub(crate) select_ttl: PreparedStatement,
    pub(crate) select_range_ttl: PreparedStatement,
    pub(crate) figures: Arc<Figures>,
    clock: Arc<dyn Clock>,
    last_stamp_us: AtomicI64,
}

/// A value, and the seconds that it has left; `None`: it never expires.
pub(crate) type Lasting = (Vec<u8>, Option<i32>);

#[derive(Clone)]
pub(crate) struct Statements {
    pub(crate) select: PreparedStatement,
    pub(crate) insert: PreparedStatement,
    pub(crate) delete: PreparedStatement,
}

impl Shared {
    pub(crate) async fn open(options: &Options, clock: &Arc<dyn Clock>) -> Result<Shared> {
        let session = connect::connect(options).await?;
        let schema = schema::open(&session, options).await?;
        let default_acks = acks(options.ack_count, schema.replica_count)?;
        let figures = Figures::new(Arc::clone(clock));
        let entity = format!("\"{}\".entity", options.keyspace);
        let prepare = async |text: String| -> Result<PreparedStatement> {
            let prepared = session.prepare(text).await;
            let mut statement = prepared.map_err(|error: PrepareError| {
                errors::of_request(&ExecutionError::PrepareError(error))
            })?;
            // A time stamp goes with each write: repeating one changes nothing.
            statement.set_is_idempotent(true);
            statement.set_consistency(default_acks.consistency);
            statement.set_history_listener(Arc::clone(&figures) as Arc<dyn HistoryListener>);
            Ok(statement)
        };
        let of_point = Statements {
            select: prepare(format!("SELECT value FROM {entity} WHERE bucket = ? AND key = ?"))
                .await?,
            insert: prepare(format!(
                "INSERT INTO {entity} (bucket, key, value) VALUES (?, ?, ?) USING TIMESTAMP ? AND \
                 TTL ?"
            ))
            .await?,
            delete: prepare(format!(
                "DELETE FROM {entity} USING TIMESTAMP ? WHERE bucket = ? AND key = ?"
            ))
            .await?,
        };
        let mut statements = Vec::new();
        for count in 1..=schema.replica_count {
            let consistency = acks(Some(count), schema.replica_count)?.consistency;
            let mut of_count = of_point.clone();
            for one in [&mut of_count.select, &mut of_count.insert, &mut of_count.delete] {
                one.set_consistency(consistency);
            }
            statements.push(of_count);
        }
        let range = |columns, end| {
            format!("SELECT {columns} FROM {entity} WHERE bucket = ? AND key >= ?{end} LIMIT ?")
        };
        Ok(Shared {
            select_range: prepare(range("key, value", "")).await?,
            select_range_to: prepare(range("key, value", " AND key < ?")).await?,
            select_keys: prepare(range("key", "")).await?,
            select_keys_to: prepare(range("key", " AND key < ?")).await?,
            select_ttl: prepare(format!(
                "SELECT value, TTL(value) FROM {entity} WHERE bucket = ? AND key = ?"
            ))
            .await?,
            select_range_ttl: prepare(range("key, value, TTL(value)", "")).await?,
            statements,
            session,
            schema,
            default_acks,
            figures,
            clock: Arc::clone(clock),
            last_stamp_us: AtomicI64::new(0),
        })
    }

    pub(crate) fn statements(&self, ack_count: Option<u32>) -> Result<&Statements> {
        let count = ack_count.unwrap_or(self.default_acks.count);
        let found = (count as usize).checked_sub(1).and_then(|index| self.statements.get(index));
        found.ok_or_else(|| Error::invalid(format!("{count} nodes cannot answer")))
    }

    pub(crate) async fn execute(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult> {
        let result = self.session.execute_unpaged(statement, values).await;
        result.map_err(|error| errors::of_request(&error))
    }

    /// The newest value of `key`, for a range, and the seconds that it has left.
    pub(crate) async fn value_of(&self, bucket: i32, key: &[u8]) -> Result<Option<Lasting>> {
        let rows = self.execute(&self.select_ttl, (bucket, key)).await?;
        let rows = rows.into_rows_result().map_err(unreadable)?;
        rows.maybe_first_row::<Lasting>().map_err(unreadable)
    }

    /// The hash must never change: it says where a record is.
    pub(crate) fn bucket_of(&self, key: &[u8]) -> i32 {
        let bucket = XxHash3_64::oneshot(key) % u64::from(self.schema.bucket_count);
        i32::try_from(bucket).expect("the count of buckets is an i32")
    }

    /// Microseconds since 1970, later than all before.
    pub(crate) fn next_stamp_us(&self) -> i64 {
        let now_us = i64::try_from(self.clock.wall_ms()).unwrap_or(i64::MAX / 1_000) * 1_000;
        let next = |last: i64| now_us.max(last + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let before = self.last_stamp_us.fetch_update(set, fetch, |last| Some(next(last)));
        next(before.unwrap_or_else(|last| last))
    }
}

pub(crate) fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("an answer of the cluster cannot be read: {error}"))
}
