//! The statements of a keyspace, prepared once.

use crate::consistency::{Acks, acks};
use crate::errors::{self, Asked};
use crate::figures::Kind;
use crate::options::Options;
use crate::retries::RetryOtherCoordinator;
use crate::schema::Schema;
use crate::second_reads::SecondReads;
use kvant_base::{Error, Result};
use scylla::client::session::Session;
use scylla::errors::{ExecutionError, PrepareError};
use scylla::policies::retry::RetryPolicy;
use scylla::policies::speculative_execution::SpeculativeExecutionPolicy;
use scylla::statement::prepared::PreparedStatement;
use std::sync::Arc;

pub(crate) struct Statements {
    pub(crate) default_acks: Acks,
    /// By the count of answers, from 1.
    of_points: Vec<PointStatements>,
    /// A value, with the seconds that it has left.
    pub(crate) select_ttl: PreparedStatement,
    of_pages: Vec<PageStatements>,
}

/// Of single records.
#[derive(Clone)]
pub(crate) struct PointStatements {
    pub(crate) select: PreparedStatement,
    pub(crate) insert: PreparedStatement,
    pub(crate) delete: PreparedStatement,
    /// Whether so many answers need no more than a quorum.
    is_quorum: bool,
}

/// What a page has of its rows, behind the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Key,
    KeyValue,
    KeyValueExpiry,
}

/// Pages with these columns, which begin at a key.
pub(crate) struct PageStatements {
    columns: Columns,
    /// Whether all keys are less than another one.
    has_end: bool,
    /// The page of one bucket.
    pub(crate) one: PreparedStatement,
    /// The pages of several.
    pub(crate) several: PreparedStatement,
}

/// What a request asks for, besides its statement.
#[derive(Clone, Copy)]
pub(crate) struct Execution {
    pub(crate) kind: Kind,
    /// Whether it needs no more than a quorum: more answers tell nothing about the coordinator.
    pub(crate) is_quorum: bool,
    /// Whether the cluster is to trace it.
    pub(crate) is_traced: bool,
}

impl Execution {
    pub(crate) const OF_PAGES: Execution =
        Execution { kind: Kind::Page, is_quorum: false, is_traced: false };
}

impl PointStatements {
    pub(crate) fn execution(&self, kind: Kind, is_traced: bool) -> Execution {
        Execution { kind, is_quorum: self.is_quorum, is_traced }
    }
}

impl Statements {
    /// # Errors
    /// `options` ask for more answers than there are replicas, or no node prepares statements.
    pub(crate) async fn prepare(
        session: &Session,
        schema: &Schema,
        options: &Options,
        second_reads: &Arc<SecondReads>,
    ) -> Result<Statements> {
        let default_acks = acks(options.ack_count, schema.replica_count)?;
        let entity = format!("\"{}\".entity", options.keyspace);
        let retries = |ack_count: u32| -> Option<Arc<dyn RetryPolicy>> {
            (ack_count < schema.replica_count).then(|| Arc::new(RetryOtherCoordinator) as Arc<_>)
        };
        let prepare = async |text: String| -> Result<PreparedStatement> {
            let prepared = session.prepare(text).await;
            let mut statement = prepared.map_err(|error: PrepareError| {
                errors::of_request(&ExecutionError::PrepareError(error), Asked::Read, false)
            })?;
            // A time stamp goes with each write: repeating one changes nothing.
            statement.set_is_idempotent(true);
            // Answers need not describe columns, whose names and types never change.
            statement.set_use_cached_result_metadata(true);
            statement.set_consistency(default_acks.consistency);
            statement.set_retry_policy(retries(default_acks.count));
            Ok(statement)
        };
        let mut select =
            prepare(format!("SELECT value FROM {entity} WHERE bucket = ? AND key = ?")).await?;
        if options.has_second_reads {
            let policy = Arc::clone(second_reads) as Arc<dyn SpeculativeExecutionPolicy>;
            let profile = session.get_default_execution_profile_handle().pointee_to_builder();
            let profile = profile.speculative_execution_policy(Some(policy)).build();
            select.set_execution_profile_handle(Some(profile.into_handle()));
        }
        let of_point = PointStatements {
            select,
            is_quorum: true,
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
        let quorum = acks(None, schema.replica_count)?;
        let mut of_points = Vec::new();
        for count in 1..=schema.replica_count {
            let acks = acks(Some(count), schema.replica_count)?;
            let mut of_count = of_point.clone();
            of_count.is_quorum = count <= quorum.count;
            for one in [&mut of_count.select, &mut of_count.insert, &mut of_count.delete] {
                one.set_consistency(acks.consistency);
                // The driver's counts may be more than was asked for.
                one.set_retry_policy(retries(acks.count));
            }
            of_points.push(of_count);
        }
        Ok(Statements {
            default_acks,
            of_points,
            select_ttl: prepare(format!(
                "SELECT value, TTL(value) FROM {entity} WHERE bucket = ? AND key = ?"
            ))
            .await?,
            of_pages: PageStatements::all(&entity, prepare).await?,
        })
    }

    pub(crate) fn of_points(&self, ack_count: Option<u32>) -> Result<&PointStatements> {
        let count = ack_count.unwrap_or(self.default_acks.count);
        let found = (count as usize).checked_sub(1).and_then(|index| self.of_points.get(index));
        found.ok_or_else(|| Error::invalid(format!("{count} nodes cannot answer")))
    }

    pub(crate) fn of_pages(&self, columns: Columns, has_end: bool) -> &PageStatements {
        let is = |one: &&PageStatements| one.columns == columns && one.has_end == has_end;
        self.of_pages.iter().find(is).expect("all of them are prepared")
    }
}

impl PageStatements {
    /// All of them.
    ///
    /// # Errors
    /// Of `prepare`.
    async fn all(
        entity: &str,
        prepare: impl AsyncFn(String) -> Result<PreparedStatement>,
    ) -> Result<Vec<PageStatements>> {
        let mut statements = Vec::new();
        for (columns, names) in [
            (Columns::Key, "bucket, key"),
            (Columns::KeyValue, "bucket, key, value"),
            (Columns::KeyValueExpiry, "bucket, key, value, TTL(value)"),
        ] {
            for (has_end, end) in [(false, ""), (true, " AND key < ?")] {
                let text = |buckets, limit| {
                    let rows = format!("bucket {buckets} AND key >= ?{end} {limit} ?");
                    format!("SELECT {names} FROM {entity} WHERE {rows}")
                };
                let one = prepare(text("= ?", "LIMIT")).await?;
                let several = prepare(text("IN ?", "PER PARTITION LIMIT")).await?;
                statements.push(PageStatements { columns, has_end, one, several });
            }
        }
        Ok(statements)
    }
}
