//! Pages of buckets, fetched together for a range.
//!
//! A wave of pages is one task beside the connections, and the range is woken once, when all of
//! them are there. Awaited on another thread, each request would wake the thread of the
//! connections, and each answer the other one.
//!
//! Memory: a page has at most [`PAGE_BYTES`] of rows as long as the longest that is known, or two
//! rows, and a wave as many pages as there is room for. Rows are parts of the answer that they
//! came in, and keep it.
//!
//! Invariant: a wave that succeeds has fetched at least one page of those that were wanted.

use crate::session::{Shared, bound, expires_at_ms, unreadable};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kvant_base::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::panic;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Keys and values of a page.
pub(crate) const PAGE_BYTES: usize = 64 << 10;
/// Pages that are fetched at the same time.
const PAGES_AT_ONCE: usize = 32;
/// Rows that are fetched at the same time while a range has none, whose rows may be longer than
/// those of others.
const FIRST_ROWS_AT_ONCE: usize = 512;
/// Rows count as this long while no range has met any.
const UNKNOWN_ROW_BYTES: usize = 1 << 20;

/// What a page has of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Key,
    KeyValue,
    KeyValueExpiry,
}

#[derive(Default)]
pub(crate) struct Row {
    pub(crate) key: Bytes,
    /// `None`: it is read when its turn comes.
    pub(crate) value: Option<Bytes>,
    /// Wall milliseconds since 1970 at which the value expires, where the range reads that.
    pub(crate) expires_at_ms: Option<u64>,
    /// Bytes that nothing keeps after this row: the last row of a page has those of the page.
    pub(crate) last_of_bytes: usize,
}

impl Row {
    fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// The next rows of a bucket.
pub(crate) struct Page {
    pub(crate) bucket: usize,
    pub(crate) rows: VecDeque<Row>,
    pub(crate) bytes: usize,
    /// The longest row; 0 without values.
    pub(crate) row_bytes_max: usize,
    /// Whether the bucket has no more.
    pub(crate) is_last: bool,
    /// At most so many rows were asked for.
    row_count: usize,
}

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
    pub(crate) async fn fetch(self, shared: &Arc<Shared>) -> Result<Vec<Page>> {
        // Dropped with this future, it ends the task.
        let mut task = JoinSet::new();
        task.spawn_on(self.run(Arc::clone(shared)), shared.runtime());
        match task.join_next().await {
            Some(Ok(pages)) => pages,
            Some(Err(error)) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            _ => Err(Error::new(ErrorKind::Closed, "the connections with the cluster are closed")),
        }
    }

    async fn run(self, shared: Arc<Shared>) -> Result<Vec<Page>> {
        let mut pages: Vec<Page> = Vec::with_capacity(self.wanted.len());
        let mut in_flight = FuturesUnordered::new();
        let (mut row_bytes, mut here_bytes, mut awaited_rows) = (self.row_bytes, 0, 0);
        let mut wanted = self.wanted.iter().peekable();
        loop {
            while in_flight.len() < PAGES_AT_ONCE
                && let Some(&next) = wanted.peek()
            {
                let likely_bytes = likely_bytes(row_bytes);
                let row_count = rows_of_page(next.row_count, likely_bytes);
                let rows = awaited_rows + row_count;
                let are_known = !self.is_first || !pages.is_empty();
                let has_room = here_bytes + rows * likely_bytes <= self.room_bytes
                    && (are_known || rows <= FIRST_ROWS_AT_ONCE);
                let is_only = pages.is_empty() && in_flight.is_empty();
                if !has_room && !is_only {
                    break;
                }
                in_flight.push(self.page(&shared, next, row_count));
                awaited_rows = rows;
                wanted.next();
            }
            let Some(page) = in_flight.next().await else { break };
            let page: Page = page?;
            awaited_rows -= page.row_count;
            here_bytes += page.bytes;
            row_bytes = row_bytes.max(page.row_bytes_max);
            pages.push(page);
        }
        Ok(pages)
    }

    async fn page(&self, shared: &Arc<Shared>, wanted: &Wanted, row_count: usize) -> Result<Page> {
        let limit = i32::try_from(row_count).unwrap_or(i32::MAX);
        let (bucket, from) = (bucket_number(wanted.bucket), &wanted.from);
        let statement = match (self.columns, &self.end) {
            (Columns::Key, None) => &shared.select_keys,
            (Columns::Key, Some(_)) => &shared.select_keys_to,
            (Columns::KeyValue, None) => &shared.select_range,
            (Columns::KeyValue, Some(_)) => &shared.select_range_to,
            (Columns::KeyValueExpiry, None) => &shared.select_range_ttl,
            (Columns::KeyValueExpiry, Some(_)) => &shared.select_range_ttl_to,
        };
        let request = match &self.end {
            None => bound(statement, &(bucket, from, limit)),
            Some(end) => bound(statement, &(bucket, from, end, limit)),
        };
        let result = shared.rows(request?, self.may_be_refused).await?;
        let result = result.into_rows_result().map_err(unreadable)?;
        let mut rows = VecDeque::with_capacity(result.rows_num());
        let mut add = |key, value, expires_at_ms| {
            rows.push_back(Row { key, value, expires_at_ms, last_of_bytes: 0 });
        };
        match self.columns {
            Columns::Key => {
                for row in result.rows::<(Bytes,)>().map_err(unreadable)? {
                    let (key,) = row.map_err(unreadable)?;
                    add(key, None, None);
                }
            }
            Columns::KeyValue => {
                for row in result.rows::<(Bytes, Bytes)>().map_err(unreadable)? {
                    let (key, value) = row.map_err(unreadable)?;
                    add(key, Some(value), None);
                }
            }
            Columns::KeyValueExpiry => {
                let now_ms = shared.wall_ms();
                for row in result.rows::<(Bytes, Bytes, Option<i32>)>().map_err(unreadable)? {
                    let (key, value, ttl_s) = row.map_err(unreadable)?;
                    add(key, Some(value), expires_at_ms(ttl_s, now_ms));
                }
            }
        }
        let bytes = result.rows_bytes_size() + rows.len() * size_of::<Row>();
        if let Some(last) = rows.back_mut() {
            last.last_of_bytes = bytes;
        }
        let row_bytes_max = match self.columns {
            Columns::Key => 0,
            _ => rows.iter().map(Row::bytes).max().unwrap_or(0),
        };
        let is_last = rows.len() < row_count;
        Ok(Page { bucket: wanted.bucket, rows, bytes, row_bytes_max, is_last, row_count })
    }
}

fn rows_of_page(row_count: usize, row_bytes: usize) -> usize {
    row_count.min((PAGE_BYTES / row_bytes).max(2))
}

fn likely_bytes(row_bytes: usize) -> usize {
    if row_bytes == 0 { UNKNOWN_ROW_BYTES } else { row_bytes }
}

pub(crate) fn bucket_number(index: usize) -> i32 {
    i32::try_from(index).expect("the count of buckets is an i32")
}
