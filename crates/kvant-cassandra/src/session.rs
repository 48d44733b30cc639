//! What all requests share: the driver's session, statements, time stamps.
//!
//! Invariant: a write has a time stamp of this process, later than those of all writes before it,
//! from the moment when it is accepted: however often and in whatever order attempts arrive, the
//! last write accepted wins. Between writes of two processes their clocks decide.

use crate::attempts::{Attempts, Course};
use crate::connect;
use crate::errors::{self, Asked};
use crate::figures::{Figures, Kind};
use crate::options::Options;
use crate::own_connections;
use crate::retries::has_too_few_responses;
use crate::room;
use crate::schema::{self, Schema};
use crate::second_reads::SecondReads;
use crate::statements::{Execution, Statements};
use crate::traces::Traces;
use bytes::Bytes;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Clock;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::observability::history::HistoryListener;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::bound::BoundStatement;
use scylla::statement::prepared::PreparedStatement;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use twox_hash::XxHash3_64;
use uuid::Uuid;

/// What requests need.
pub(crate) struct Shared {
    /// Of the runtime of this crate.
    pub(crate) session: Arc<Session>,
    pub(crate) schema: Schema,
    pub(crate) statements: Statements,
    pub(crate) figures: Arc<Figures>,
    pub(crate) second_reads: Arc<SecondReads>,
    pub(crate) traces: Traces,
    runtime: Handle,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    last_stamp_us: AtomicI64,
    /// The longest record that ranges have met lately; 0: none.
    row_bytes: AtomicUsize,
}

/// A value, and the wall milliseconds since 1970 at which it expires; `None`: it never does.
pub(crate) type Lasting = (Bytes, Option<u64>);

impl Shared {
    pub(crate) async fn open(
        options: &Options,
        clock: &Arc<dyn Clock>,
        figures: &Arc<Figures>,
    ) -> Result<Shared> {
        let session = connect::connect(options, figures).await?;
        let schema = schema::open(&session, options).await?;
        let second_reads = SecondReads::new(options.has_second_reads, Arc::clone(clock));
        let statements = Statements::prepare(&session, &schema, options, &second_reads).await?;
        Ok(Shared {
            statements,
            session: Arc::new(session),
            schema,
            figures: Arc::clone(figures),
            second_reads,
            traces: Traces::new(),
            runtime: Handle::current(),
            timeout: options.timeout,
            clock: Arc::clone(clock),
            last_stamp_us: AtomicI64::new(0),
            row_bytes: AtomicUsize::new(0),
        })
    }

    /// Sends a request to one node, or to others after it.
    pub(crate) async fn execute(
        self: &Arc<Shared>,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        execution: Execution,
    ) -> (Result<QueryResult>, Course) {
        match bound(statement, &values) {
            Ok(mut request) => self.execute_bound(&mut request, execution).await,
            Err(error) => (Err(error), Course::default()),
        }
    }

    async fn execute_bound(
        self: &Arc<Shared>,
        request: &mut BoundStatement,
        execution: Execution,
    ) -> (Result<QueryResult>, Course) {
        let attempts =
            Attempts::new(&self.figures, &self.second_reads, execution.kind, execution.is_quorum);
        let slot = if execution.is_traced { self.traces.slot() } else { None };
        request.set_history_listener(Arc::clone(&attempts) as Arc<dyn HistoryListener>);
        request.set_tracing(slot.is_some());
        // After an outage each session connects by itself, up to ten seconds later than another.
        let own = own_connections::session(&self.figures).filter(|own| is_connected(own));
        let session = own.unwrap_or_else(|| Arc::clone(&self.session));
        let result = session.execute_bound_unpaged(request).await;
        let mut course = attempts.course();
        if let (Some(slot), Ok(done)) = (slot, &result) {
            course.trace_id = done.tracing_id().map(|id| id.as_u128());
            self.fetch_trace(course.trace_id, slot);
        }
        (result.map_err(|error| explain(&error, &session, &attempts)), course)
    }

    /// As [`Shared::execute`], for records of a range. Where its client has half of a response, it
    /// may not be refused, and waits for room.
    async fn execute_of_range(
        self: &Arc<Shared>,
        mut request: BoundStatement,
        execution: Execution,
        may_be_refused: bool,
    ) -> Result<QueryResult> {
        if may_be_refused {
            return self.execute_bound(&mut request, execution).await.0;
        }
        room::wait_for_it(&self.figures.room, self.timeout, || {
            let mut request = request.clone();
            async move { self.execute_bound(&mut request, execution).await.0 }
        })
        .await
    }

    /// Reads a trace, in the background.
    fn fetch_trace(self: &Arc<Shared>, id: Option<u128>, slot: OwnedSemaphorePermit) {
        let Some(id) = id else { return };
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            // Where the cluster does not give it in time, the slow request has its number alone.
            if let Ok(info) = shared.session.get_tracing_info(&Uuid::from_u128(id)).await {
                shared.traces.keep(id, info);
            }
            drop(slot);
        });
    }

    /// The newest value of `key`, for a range, and when it expires.
    pub(crate) async fn value_of(
        self: &Arc<Shared>,
        bucket: i32,
        key: &[u8],
        may_be_refused: bool,
    ) -> Result<Option<Lasting>> {
        let execution = self.statements.of_points(None)?.execution(Kind::Read, false);
        let request = bound(&self.statements.select_ttl, &(bucket, key))?;
        let rows = self.execute_of_range(request, execution, may_be_refused).await?;
        let rows = rows.into_rows_result().map_err(unreadable)?;
        let row = rows.maybe_first_row::<(Bytes, Option<i32>)>().map_err(unreadable)?;
        let now_ms = self.wall_ms();
        Ok(row.map(|(value, ttl_s)| (value, expires_at_ms(ttl_s, now_ms))))
    }

    /// A page of a range.
    pub(crate) async fn rows(
        self: &Arc<Shared>,
        request: BoundStatement,
        may_be_refused: bool,
    ) -> Result<QueryResult> {
        let execution = Execution::OF_PAGES;
        self.execute_of_range(request, execution, may_be_refused).await
    }

    /// Where the connections are.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The longest record that ranges have met lately; 0: none.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn note_row_bytes(&self, bytes: usize) {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let next = |before: usize| Some(bytes.max(before - before / 16));
        self.row_bytes.fetch_update(set, fetch, next).unwrap_or(bytes);
    }

    /// The hash must never change: it says where a record is.
    pub(crate) fn bucket_of(&self, key: &[u8]) -> i32 {
        let bucket = XxHash3_64::oneshot(key) % u64::from(self.schema.bucket_count);
        i32::try_from(bucket).expect("the count of buckets is an i32")
    }

    pub(crate) fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    /// Microseconds since 1970, later than all before.
    pub(crate) fn next_stamp_us(&self) -> i64 {
        let now_us = i64::try_from(self.clock.wall_us()).unwrap_or(i64::MAX - 1);
        let next = |last: i64| now_us.max(last + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let before = self.last_stamp_us.fetch_update(set, fetch, |last| Some(next(last)));
        next(before.unwrap_or_else(|last| last))
    }
}

/// The error of a request by what the caller must do.
fn explain(error: &ExecutionError, session: &Session, attempts: &Attempts) -> Error {
    let is_unsent =
        matches!(error, ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_))
            && attempts.is_empty();
    if is_unsent && is_connected(session) {
        let what = "the nodes that store the records have as many requests as they can do in time";
        return Error::new(ErrorKind::Overloaded, what);
    }
    // An error response has counts; a failure of the driver after it has none.
    let answer = attempts.last_answer().filter(|(_, answer)| match error {
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => true,
        ExecutionError::RequestTimeout(_) => has_too_few_responses(answer),
        _ => false,
    });
    let asked = if attempts.is_write() { Asked::Write } else { Asked::Read };
    match answer {
        Some((at, answer)) => {
            let answer = ExecutionError::LastAttemptError(answer);
            errors::of_request(&answer, asked, attempts.may_be_done(Some(at)))
        }
        None => errors::of_request(error, asked, attempts.may_be_done_beside(error)),
    }
}

fn is_connected(session: &Session) -> bool {
    session.get_cluster_state().get_nodes_info().iter().any(|node| node.is_connected())
}

/// When a value expires that had so many seconds left in a response that has just come.
pub(crate) fn expires_at_ms(ttl_s: Option<i32>, now_ms: u64) -> Option<u64> {
    let ttl_s = u64::try_from(ttl_s?).ok()?;
    Some(now_ms + ttl_s * 1_000)
}

/// A request that is ready to be sent, any number of times.
pub(crate) fn bound(
    statement: &PreparedStatement,
    values: &impl SerializeRow,
) -> Result<BoundStatement> {
    let request = statement.clone().bind(values);
    request.map_err(|error| Error::new(ErrorKind::Io, format!("values cannot be sent: {error}")))
}

/// The value in the answer to a read of one record.
pub(crate) fn value_in(result: QueryResult) -> Result<Option<Bytes>> {
    let rows = result.into_rows_result().map_err(unreadable)?;
    let row = rows.maybe_first_row::<(Bytes,)>().map_err(unreadable)?;
    Ok(row.map(|(value,)| value))
}

pub(crate) fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("an answer of the cluster cannot be read: {error}"))
}

pub(crate) fn bucket_number(index: usize) -> i32 {
    i32::try_from(index).expect("the count of buckets is an i32")
}
