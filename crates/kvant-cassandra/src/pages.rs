//! Pages of buckets, fetched together for a range.
//!
//! A wave of pages is one task beside the connections, and the range is woken once, when all of
//! them are there. Awaited on another thread, each request would wake the thread of the
//! connections, and each answer the other one.
//!
//! Buckets whose pages begin at the same key, as all do at the beginning of a range, are read by
//! one request, which costs less than one for each (docs/decisions/0053). The later pages of a
//! bucket have requests of their own, which go to a node that stores it.
//!
//! Memory: a response has at most [`RESPONSE_BYTES`] of rows as long as the longest that is known,
//! or two rows, and a wave as many as there is room for. Rows are parts of the response that they
//! came in, and keep it.
//!
//! Invariant: a wave that succeeds has fetched at least one page of those that were wanted.

use crate::response::{Pages, Row, Unread};
use crate::session::{Shared, bound, bucket_number, expires_at_ms, unreadable};
use crate::statements::Columns;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kvant_base::{Error, ErrorKind, Result};
use scylla::statement::bound::BoundStatement;
use std::panic;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Keys and values of a response.
const RESPONSE_BYTES: usize = 64 << 10;
/// Requests that are in flight at the same time.
const REQUESTS_AT_ONCE: usize = 16;
/// Buckets that a request reads. Operators may limit the partitions of one: the proposal of
/// Cassandra's guardrails has 20 as its example.
const BUCKETS_MAX: usize = 16;
/// Rows that are fetched at the same time while a range has none, whose rows may be longer than
/// those of others.
const FIRST_ROWS_AT_ONCE: usize = 512;
/// Rows count as this long while no range has met any.
const UNKNOWN_ROW_BYTES: usize = 1 << 20;

/// A page that a range wants.
pub(crate) struct Wanted {
    pub(crate) bucket: usize,
    /// The least key.
    pub(crate) from: Bytes,
    /// Rows, if they are short.
    pub(crate) row_count: usize,
}

pub(crate) struct Wave {
    pub(crate) wanted: Vec<Wanted>,
    /// All keys are less.
    pub(crate) end: Option<Bytes>,
    pub(crate) columns: Columns,
    /// The longest row that is known; 0: none.
    pub(crate) row_bytes: usize,
    /// For rows with values.
    pub(crate) room_bytes: usize,
    /// Whether the range has no page yet.
    pub(crate) is_first: bool,
    /// Whether the range has given no record yet, so that it can still be refused.
    pub(crate) may_be_refused: bool,
}

impl Wanted {
    /// Whether one request can ask for both pages.
    fn is_like(&self, other: &Wanted) -> bool {
        (self.row_count, &self.from) == (other.row_count, &other.from)
    }
}

impl Wave {
    /// The least bytes that a page with rows as long as known ones may have.
    pub(crate) fn page_bytes_min(row_bytes: usize) -> usize {
        2 * likely_bytes(row_bytes)
    }

    /// Memory of a page of so many rows as long as known ones, if it may have so many.
    pub(crate) fn page_bytes(row_count: usize, row_bytes: usize) -> usize {
        let row_bytes = likely_bytes(row_bytes);
        rows_of_page(row_count, row_bytes) * (row_bytes + size_of::<Row>())
    }

    /// Fetches pages, in any order: of all buckets that are wanted, or of as many as there is room
    /// for.
    ///
    /// # Errors
    /// As of a request for one record.
    pub(crate) async fn fetch(self, shared: &Arc<Shared>) -> Result<Pages> {
        // Dropped with this future, it ends the task.
        let mut task = JoinSet::new();
        task.spawn_on(self.run(Arc::clone(shared)), shared.runtime());
        match task.join_next().await {
            Some(Ok(pages)) => pages,
            Some(Err(error)) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            _ => Err(Error::new(ErrorKind::Closed, "the connections with the cluster are closed")),
        }
    }

    async fn run(self, shared: Arc<Shared>) -> Result<Pages> {
        let mut fetched = Pages::default();
        let mut in_flight = FuturesUnordered::new();
        let (mut row_bytes, mut awaited_rows) = (self.row_bytes, 0);
        let mut wanted = &self.wanted[..];
        loop {
            while in_flight.len() < REQUESTS_AT_ONCE && !wanted.is_empty() {
                let key_value_bytes = likely_bytes(row_bytes);
                let row_count = rows_of_page(wanted[0].row_count, key_value_bytes);
                let likely_bytes = key_value_bytes + size_of::<Row>();
                let room_rows = self.room_bytes.saturating_sub(fetched.bytes) / likely_bytes;
                let are_known = !self.is_first || !fetched.pages.is_empty();
                let room_rows =
                    if are_known { room_rows } else { room_rows.min(FIRST_ROWS_AT_ONCE) };
                let fitting = room_rows.saturating_sub(awaited_rows) / row_count;
                let is_only = fetched.pages.is_empty() && in_flight.is_empty();
                if fitting == 0 && !is_only {
                    break;
                }
                let fitting = fitting.min(RESPONSE_BYTES / likely_bytes / row_count);
                let alike = wanted.iter().take_while(|other| other.is_like(&wanted[0]));
                let count = alike.take(fitting.clamp(1, BUCKETS_MAX)).count();
                let (these, others) = wanted.split_at(count);
                in_flight.push(self.pages(&shared, these, row_count));
                awaited_rows += count * row_count;
                wanted = others;
            }
            let Some(pages) = in_flight.next().await else { break };
            let pages: Pages = pages?;
            awaited_rows -= pages.asked_rows;
            row_bytes = row_bytes.max(pages.row_bytes_max);
            fetched.extend(pages);
        }
        Ok(fetched)
    }

    /// The pages of buckets that are wanted alike.
    async fn pages(
        &self,
        shared: &Arc<Shared>,
        wanted: &[Wanted],
        row_count: usize,
    ) -> Result<Pages> {
        let rows =
            shared.rows(self.request(shared, wanted, row_count)?, self.may_be_refused).await?;
        let rows = rows.into_rows_result().map_err(unreadable)?;
        let buckets = wanted.iter().map(|wanted| wanted.bucket);
        let mut pages = Unread::new(buckets, row_count, rows.rows_num());
        match self.columns {
            Columns::Key => {
                for row in rows.rows::<(i32, Bytes)>().map_err(unreadable)? {
                    let (bucket, key) = row.map_err(unreadable)?;
                    pages.add(bucket, Row { key, ..Row::default() })?;
                }
            }
            Columns::KeyValue => {
                for row in rows.rows::<(i32, Bytes, Bytes)>().map_err(unreadable)? {
                    let (bucket, key, value) = row.map_err(unreadable)?;
                    pages.add(bucket, Row { key, value: Some(value), ..Row::default() })?;
                }
            }
            Columns::KeyValueExpiry => {
                let now_ms = shared.wall_ms();
                for row in rows.rows::<(i32, Bytes, Bytes, Option<i32>)>().map_err(unreadable)? {
                    let (bucket, key, value, ttl_s) = row.map_err(unreadable)?;
                    let (value, expires_at_ms) = (Some(value), expires_at_ms(ttl_s, now_ms));
                    pages.add(bucket, Row { key, value, expires_at_ms, ..Row::default() })?;
                }
            }
        }
        Ok(pages.read(rows.rows_bytes_size()))
    }

    fn request(
        &self,
        shared: &Shared,
        wanted: &[Wanted],
        row_count: usize,
    ) -> Result<BoundStatement> {
        let limit = i32::try_from(row_count).unwrap_or(i32::MAX);
        let statements = shared.statements.of_pages(self.columns, self.end.is_some());
        let from = &wanted[0].from;
        if let [Wanted { bucket, .. }] = wanted {
            let bucket = bucket_number(*bucket);
            return match &self.end {
                None => bound(&statements.one, &(bucket, from, limit)),
                Some(end) => bound(&statements.one, &(bucket, from, end, limit)),
            };
        }
        let buckets: Vec<_> = wanted.iter().map(|wanted| bucket_number(wanted.bucket)).collect();
        match &self.end {
            None => bound(&statements.several, &(buckets, from, limit)),
            Some(end) => bound(&statements.several, &(buckets, from, end, limit)),
        }
    }
}

fn rows_of_page(row_count: usize, row_bytes: usize) -> usize {
    row_count.min((RESPONSE_BYTES / row_bytes).max(2))
}

fn likely_bytes(row_bytes: usize) -> usize {
    if row_bytes == 0 { UNKNOWN_ROW_BYTES } else { row_bytes }
}
