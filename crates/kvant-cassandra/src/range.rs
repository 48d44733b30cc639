//! Records in key order, merged from all buckets.
//!
//! Each bucket is one partition, whose records the cluster keeps in key order. A range reads the
//! next few of each bucket, a page, and takes the least key of all until the page of a bucket is
//! used up. It then fetches another, which begins behind the last key of the one before: nothing
//! but this key is kept between pages, by either side.
//!
//! A range is no snapshot: a record that is written or deleted meanwhile is there or not.
//!
//! Memory: a page has at most [`PAGE_BYTES`] of rows as long as the longest that the range has
//! seen. When [`HELD_BYTES_MAX`] are exceeded, or would be by the next pages, pages have keys
//! alone, and values are read one by one when their turn comes.
//!
//! Invariants:
//! 1. `heads` has the first row of each bucket that has rows.
//! 2. No record is taken while a bucket that has not ended has no row.

use crate::session::{Shared, unreadable};
use bytes::Bytes;
use futures::{StreamExt, stream};
use kvant_base::Result;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Keys and values of a page.
const PAGE_BYTES: usize = 64 << 10;
const PAGE_ROWS_MAX: usize = 512;
/// Pages that are fetched at the same time, and while the length of rows is not known.
const PAGES_AT_ONCE: usize = 32;
const FIRST_PAGES_AT_ONCE: usize = 8;
/// Keys and values that wait for their turn.
const HELD_BYTES_MAX: usize = 32 << 20;

/// Records of a keyspace in key order.
pub struct Range {
    shared: Arc<Shared>,
    end: Option<Bytes>,
    left_count: u64,
    buckets: Vec<Bucket>,
    heads: BinaryHeap<Reverse<(Bytes, usize)>>,
    /// Buckets without rows that have not ended.
    missing_count: usize,
    held_bytes: usize,
    /// The longest row so far.
    row_bytes_max: usize,
    wants_ttl: bool,
    current: Row,
}

struct Bucket {
    rows: VecDeque<Row>,
    /// Where the next page begins.
    from: Bytes,
    /// Rows of the next page, if they are short.
    page_rows: usize,
    has_ended: bool,
}

#[derive(Default)]
struct Row {
    key: Bytes,
    /// `None`: it is read when its turn comes.
    value: Option<Vec<u8>>,
    /// Seconds that the value has left, where the range reads them.
    ttl_s: Option<i32>,
}

impl Row {
    fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

/// What a page has of its rows.
#[derive(Clone, Copy)]
enum Columns {
    Key,
    KeyValue,
    KeyValueTtl,
}

struct Page {
    rows: Vec<Row>,
    is_last: bool,
}

impl Range {
    pub(crate) fn new(
        shared: Arc<Shared>,
        start: &[u8],
        end: Option<&[u8]>,
        count_max: u64,
    ) -> Range {
        let bucket_count = shared.schema.bucket_count as usize;
        let start = Bytes::copy_from_slice(start);
        let bucket = || Bucket {
            rows: VecDeque::new(),
            from: start.clone(),
            page_rows: first_page_rows(count_max, bucket_count),
            has_ended: false,
        };
        Range {
            end: end.map(Bytes::copy_from_slice),
            left_count: count_max,
            buckets: std::iter::repeat_with(bucket).take(bucket_count).collect(),
            heads: BinaryHeap::with_capacity(bucket_count),
            missing_count: bucket_count,
            held_bytes: 0,
            row_bytes_max: 0,
            wants_ttl: false,
            current: Row::default(),
            shared,
        }
    }

    /// All records from `start` on, with the time that they have left.
    pub(crate) fn with_ttl(shared: Arc<Shared>, start: &[u8]) -> Range {
        Range { wants_ttl: true, ..Range::new(shared, start, None, u64::MAX) }
    }

    /// The next record, key and value, or `None` at the end, or where [`Range::must_fetch`].
    pub fn take_next(&mut self) -> Option<(&[u8], &[u8])> {
        if self.left_count == 0 || self.must_fetch() {
            return None;
        }
        let Reverse((_, index)) = self.heads.pop()?;
        self.current = self.take_first(index)?;
        self.left_count -= 1;
        Some((&self.current.key, self.current.value.as_deref().unwrap_or_default()))
    }

    /// The record that was taken last: key, value and, of [`crate::Cluster::scan`], the seconds
    /// that it has left; `None`: it never expires.
    pub fn taken(&self) -> (&[u8], &[u8], Option<u32>) {
        let Row { key, value, ttl_s } = &self.current;
        let ttl_s = ttl_s.and_then(|ttl_s| u32::try_from(ttl_s).ok());
        (key, value.as_deref().unwrap_or_default(), ttl_s)
    }

    /// Whether the next record has to be fetched first.
    pub fn must_fetch(&self) -> bool {
        self.left_count > 0 && (self.missing_count > 0 || self.is_value_missing())
    }

    /// Fetches what the next record needs, and more.
    ///
    /// # Errors
    /// As of a request for one record.
    pub async fn fetch(&mut self) -> Result<()> {
        while self.must_fetch() {
            if self.missing_count > 0 {
                self.fetch_pages().await?;
            } else {
                self.fetch_value().await?;
            }
        }
        Ok(())
    }

    fn is_value_missing(&self) -> bool {
        let first =
            self.heads.peek().and_then(|Reverse((_, index))| self.buckets[*index].rows.front());
        first.is_some_and(|row| row.value.is_none())
    }

    /// Reads the value of the next record. A record that was deleted meanwhile is left out.
    async fn fetch_value(&mut self) -> Result<()> {
        let Some(Reverse((key, index))) = self.heads.peek().cloned() else { return Ok(()) };
        let value = self.shared.value_of(bucket_number(index), &key).await?;
        match (value, self.buckets[index].rows.front_mut()) {
            (Some((value, ttl_s)), Some(row)) => {
                self.held_bytes += value.len();
                row.value = Some(value);
                row.ttl_s = ttl_s;
            }
            _ => {
                self.heads.pop();
                self.take_first(index);
            }
        }
        Ok(())
    }

    /// Fetches a page of each bucket that has few rows left.
    async fn fetch_pages(&mut self) -> Result<()> {
        let is_low =
            |bucket: &Bucket| !bucket.has_ended && bucket.rows.len() <= bucket.page_rows / 8;
        let low = (0..self.buckets.len()).filter(|&index| is_low(&self.buckets[index]));
        let mut low: Vec<usize> = low.collect();
        let is_first = self.row_bytes_max == 0;
        if is_first {
            low.truncate(FIRST_PAGES_AT_ONCE);
        }
        let columns = match (self.has_room_for(low.len().min(PAGES_AT_ONCE)), self.wants_ttl) {
            (false, _) => Columns::Key,
            (true, false) => Columns::KeyValue,
            (true, true) => Columns::KeyValueTtl,
        };
        let row_bytes = self.row_bytes_max.max(1);
        let pages = low.into_iter().map(|index| {
            let bucket = &self.buckets[index];
            let row_count = bucket.page_rows.min(PAGE_BYTES / row_bytes).max(2);
            let (from, end) = (bucket.from.clone(), self.end.clone());
            let shared = Arc::clone(&self.shared);
            async move {
                let number = bucket_number(index);
                let limits = PageLimits { end, row_count, columns, is_first };
                (index, shared.page(number, from, limits).await)
            }
        });
        let mut pages = stream::iter(pages.collect::<Vec<_>>()).buffer_unordered(PAGES_AT_ONCE);
        while let Some((index, page)) = pages.next().await {
            self.add(index, page?);
        }
        // Without any row their length stays unknown, and the next pages are few again.
        if is_first && self.row_bytes_max == 0 {
            self.row_bytes_max = 1;
        }
        Ok(())
    }

    /// Whether pages with values are likely to stay within the limit.
    fn has_room_for(&self, page_count: usize) -> bool {
        let page_bytes = PAGE_BYTES.max(2 * self.row_bytes_max);
        self.held_bytes + page_count * page_bytes <= HELD_BYTES_MAX
    }

    fn add(&mut self, index: usize, page: Page) {
        let bucket = &mut self.buckets[index];
        let was_missing = bucket.rows.is_empty();
        bucket.has_ended = page.is_last;
        bucket.page_rows = (4 * bucket.page_rows).min(PAGE_ROWS_MAX);
        if let Some(last) = page.rows.last() {
            bucket.from = behind(&last.key);
        }
        for mut row in page.rows {
            self.row_bytes_max = self.row_bytes_max.max(row.bytes());
            if self.held_bytes + row.bytes() > HELD_BYTES_MAX {
                row.value = None;
            }
            self.held_bytes += row.bytes();
            bucket.rows.push_back(row);
        }
        if was_missing {
            match bucket.rows.front() {
                Some(row) => self.heads.push(Reverse((row.key.clone(), index))),
                None if !bucket.has_ended => return,
                None => {}
            }
            self.missing_count -= 1;
        }
    }

    /// Takes the first row of a bucket, whose head was taken.
    fn take_first(&mut self, index: usize) -> Option<Row> {
        let bucket = &mut self.buckets[index];
        let row = bucket.rows.pop_front()?;
        self.held_bytes -= row.bytes();
        match bucket.rows.front() {
            Some(next) => self.heads.push(Reverse((next.key.clone(), index))),
            None if !bucket.has_ended => self.missing_count += 1,
            None => {}
        }
        Some(row)
    }
}

struct PageLimits {
    end: Option<Bytes>,
    row_count: usize,
    columns: Columns,
    /// Whether the range has no row yet.
    is_first: bool,
}

impl Shared {
    /// At most `row_count` rows of a bucket.
    async fn page(
        self: &Arc<Shared>,
        bucket: i32,
        from: Bytes,
        limits: PageLimits,
    ) -> Result<Page> {
        let PageLimits { end, row_count, columns, is_first } = limits;
        let limit = i32::try_from(row_count).unwrap_or(i32::MAX);
        let statement = match (columns, &end) {
            (Columns::Key, None) => &self.select_keys,
            (Columns::Key, Some(_)) => &self.select_keys_to,
            (Columns::KeyValue, None) => &self.select_range,
            (Columns::KeyValue, Some(_)) => &self.select_range_to,
            (Columns::KeyValueTtl, _) => &self.select_range_ttl,
        };
        let result = match (columns, end) {
            (Columns::KeyValueTtl, _) | (_, None) => {
                self.rows(statement, (bucket, from, limit), is_first).await?
            }
            (_, Some(end)) => self.rows(statement, (bucket, from, end, limit), is_first).await?,
        };
        let result = result.into_rows_result().map_err(unreadable)?;
        let mut rows = Vec::with_capacity(result.rows_num());
        match columns {
            Columns::Key => {
                for row in result.rows::<(Vec<u8>,)>().map_err(unreadable)? {
                    let (key,) = row.map_err(unreadable)?;
                    rows.push(Row { key: key.into(), value: None, ttl_s: None });
                }
            }
            Columns::KeyValue => {
                for row in result.rows::<(Vec<u8>, Vec<u8>)>().map_err(unreadable)? {
                    let (key, value) = row.map_err(unreadable)?;
                    rows.push(Row { key: key.into(), value: Some(value), ttl_s: None });
                }
            }
            Columns::KeyValueTtl => {
                for row in result.rows::<(Vec<u8>, Vec<u8>, Option<i32>)>().map_err(unreadable)? {
                    let (key, value, ttl_s) = row.map_err(unreadable)?;
                    rows.push(Row { key: key.into(), value: Some(value), ttl_s });
                }
            }
        }
        Ok(Page { is_last: rows.len() < row_count, rows })
    }
}

/// Enough for most buckets, if keys are spread evenly: a bucket must show one row more than it
/// gives.
fn first_page_rows(count_max: u64, bucket_count: usize) -> usize {
    let share = (count_max.saturating_add(count_max / 2)).div_ceil(bucket_count as u64);
    usize::try_from(share).unwrap_or(PAGE_ROWS_MAX).clamp(1, 31) + 1
}

fn bucket_number(index: usize) -> i32 {
    i32::try_from(index).expect("the count of buckets is an i32")
}

/// The least key after `key`.
fn behind(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}
