//! Records in key order, merged from all buckets.
//!
//! Each bucket is one partition, whose records the cluster keeps in key order. A range reads the
//! next few of each bucket, a page, and takes the least key of all until the page of a bucket is
//! used up. It then fetches another, which begins behind the last key of the one before, and with
//! it those that are likely to be needed soon: nothing but this key is kept between pages, by
//! either side.
//!
//! A range is no snapshot: a record that is written or deleted meanwhile is there or not.
//!
//! Memory: pages are sized by the longest rows of the last ones, at the beginning by those that
//! other ranges have met lately ([`crate::pages`]). Where [`HELD_BYTES_MAX`] have no room for
//! another, pages have keys alone, at most [`KEY_ROWS_MAX`] or one of each bucket, and values are
//! read one by one when their turn comes.
//!
//! Invariants:
//! 1. `heads` has the first row of each bucket that has rows.
//! 2. No record is taken while a bucket that has not ended has no row.

use crate::pages::{Wanted, Wave};
use crate::response::{Page, Row};
use crate::session::{Shared, bucket_number};
use crate::statements::Columns;
use bytes::Bytes;
use kvant_base::Result;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

const PAGE_ROWS_MAX: usize = 512;
/// Rows of the first page of a bucket, where the range may end long before its limit.
const FIRST_PAGE_ROWS: usize = 32;
/// Keys and values that wait for their turn.
const HELD_BYTES_MAX: usize = 32 << 20;
/// Keys without values that wait for their turn, or one of each bucket if there are more buckets:
/// the longest ones take 32 MiB.
const KEY_ROWS_MAX: usize = 2048;

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
    /// The longest row of the last pages, or of those of other ranges; 0: not known.
    row_bytes: usize,
    has_pages: bool,
    has_given: bool,
    wants_expiry: bool,
    current: Row,
}

struct Bucket {
    rows: VecDeque<Row>,
    /// Where the next page begins.
    from: Bytes,
    /// Rows of the next page, if they are short and the range needs so many.
    page_rows: usize,
    has_ended: bool,
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
        let page_rows = match likely_rows(count_max, bucket_count) {
            rows @ ..=PAGE_ROWS_MAX => rows,
            _ => FIRST_PAGE_ROWS,
        };
        let bucket =
            || Bucket { rows: VecDeque::new(), from: start.clone(), page_rows, has_ended: false };
        Range {
            end: end.map(Bytes::copy_from_slice),
            left_count: count_max,
            buckets: std::iter::repeat_with(bucket).take(bucket_count).collect(),
            heads: BinaryHeap::with_capacity(bucket_count),
            missing_count: bucket_count,
            held_bytes: 0,
            row_bytes: shared.row_bytes(),
            has_pages: false,
            has_given: false,
            wants_expiry: false,
            current: Row::default(),
            shared,
        }
    }

    /// All records of a range, with the time at which they expire.
    pub(crate) fn with_expiry(shared: Arc<Shared>, start: &[u8], end: Option<&[u8]>) -> Range {
        Range { wants_expiry: true, ..Range::new(shared, start, end, u64::MAX) }
    }

    /// The next record, key and value, or `None` at the end, or where [`Range::must_fetch`].
    pub fn take_next(&mut self) -> Option<(&[u8], &[u8])> {
        if self.left_count == 0 || self.must_fetch() {
            return None;
        }
        self.current = self.take_first()?;
        self.has_given = true;
        self.left_count -= 1;
        Some((&self.current.key, self.current.value.as_deref().unwrap_or_default()))
    }

    /// The record that was taken last: key, value and, of [`crate::Cluster::scan`], the wall
    /// milliseconds since 1970 at which it expires, too late by at most a second and the time that
    /// its response took; `None`: it never does.
    pub fn taken(&self) -> (&[u8], &[u8], Option<u64>) {
        let Row { key, value, expires_at_ms, .. } = &self.current;
        (key, value.as_deref().unwrap_or_default(), *expires_at_ms)
    }

    /// Bytes of the records that wait for their turn.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The most that [`Range::held_bytes`] is likely to become; 0 while no range has met a record.
    pub fn likely_bytes(&self) -> usize {
        if self.row_bytes == 0 {
            return 0;
        }
        let rows = likely_rows(self.left_count, self.buckets.len()).min(PAGE_ROWS_MAX);
        let bytes = self.buckets.len().saturating_mul(Wave::page_bytes(rows, self.row_bytes));
        bytes.min(HELD_BYTES_MAX)
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
        let may_be_refused = !self.has_given;
        let value = self.shared.value_of(bucket_number(index), &key, may_be_refused).await?;
        match (value, self.buckets[index].rows.front_mut()) {
            (Some((value, expires_at_ms)), Some(row)) => {
                self.held_bytes += value.len();
                self.row_bytes = self.row_bytes.max(key.len() + value.len());
                row.own_bytes += value.len();
                row.value = Some(value);
                row.expires_at_ms = expires_at_ms;
            }
            _ => {
                self.take_first();
            }
        }
        Ok(())
    }

    /// Fetches pages of buckets that have no row, and of those that have few.
    async fn fetch_pages(&mut self) -> Result<()> {
        let wave = self.next_wave();
        let has_values = wave.columns != Columns::Key;
        let fetched = wave.fetch(&self.shared).await?;
        self.has_pages = true;
        self.held_bytes += fetched.bytes;
        let row_bytes_max = fetched.row_bytes_max;
        if has_values && row_bytes_max > 0 {
            // Half of the old length at least: later pages grow again after one long row.
            self.row_bytes = row_bytes_max.max(self.row_bytes / 2);
            self.shared.note_row_bytes(row_bytes_max);
        }
        fetched.pages.into_iter().for_each(|page| self.add(page));
        Ok(())
    }

    fn next_wave(&self) -> Wave {
        let bucket_count = self.buckets.len();
        // What is left needs so many rows of each bucket, on average.
        let share = usize::try_from(self.left_count / bucket_count as u64).unwrap_or(usize::MAX);
        let is_low = |bucket: &Bucket| bucket.rows.len() <= share.min(bucket.page_rows / 8);
        let rows_max = likely_rows(self.left_count, bucket_count);
        let low = self.buckets.iter().enumerate();
        let low = low.filter(|(_, bucket)| !bucket.has_ended && is_low(bucket));
        let (missing, mut low): (Vec<_>, Vec<_>) =
            low.partition(|(_, bucket)| bucket.rows.is_empty());
        let room_bytes = HELD_BYTES_MAX.saturating_sub(self.held_bytes);
        let has_room = room_bytes >= Wave::page_bytes_min(self.row_bytes);
        let rows_max = if has_room {
            rows_max
        } else {
            low.clear();
            rows_max.min(KEY_ROWS_MAX / bucket_count).max(1)
        };
        let wanted = missing.into_iter().chain(low).map(|(index, bucket)| Wanted {
            bucket: index,
            from: bucket.from.clone(),
            row_count: bucket.page_rows.min(rows_max),
        });
        let (columns, room_bytes) = match (has_room, self.wants_expiry) {
            (false, _) => (Columns::Key, usize::MAX),
            (true, false) => (Columns::KeyValue, room_bytes),
            (true, true) => (Columns::KeyValueExpiry, room_bytes),
        };
        Wave {
            wanted: wanted.collect(),
            end: self.end.clone(),
            columns,
            row_bytes: self.row_bytes,
            room_bytes,
            is_first: !self.has_pages,
            may_be_refused: !self.has_given,
        }
    }

    fn add(&mut self, page: Page) {
        let bucket = &mut self.buckets[page.bucket];
        bucket.has_ended = page.is_last;
        bucket.page_rows = (4 * bucket.page_rows).min(PAGE_ROWS_MAX);
        if let Some(last) = page.rows.back().filter(|_| !page.is_last) {
            bucket.from = behind(&last.key);
        }
        if !bucket.rows.is_empty() {
            bucket.rows.extend(page.rows);
            return;
        }
        bucket.rows = page.rows;
        match bucket.rows.front() {
            Some(row) => self.heads.push(Reverse((row.key.clone(), page.bucket))),
            None if !bucket.has_ended => return,
            None => {}
        }
        self.missing_count -= 1;
    }

    /// Takes the row with the least key.
    fn take_first(&mut self) -> Option<Row> {
        let mut head = self.heads.peek_mut()?;
        let bucket = &mut self.buckets[head.0.1];
        let mut row = bucket.rows.pop_front()?;
        match bucket.rows.front() {
            Some(next) => head.0.0 = next.key.clone(),
            None => {
                PeekMut::pop(head);
                self.missing_count += usize::from(!bucket.has_ended);
            }
        }
        self.held_bytes -= row.freed_bytes();
        Some(row)
    }
}

/// Rows of each bucket that a range of `count` records is likely to need: keys are spread by
/// chance, so some buckets have more than their share. One more row shows that a bucket is not
/// used up.
///
/// Two and a half standard deviations: 94 of 100 ranges of 100 records from 16 buckets need no
/// second page of any. Each row more costs as much in every bucket.
fn likely_rows(count: u64, bucket_count: usize) -> usize {
    let mean = count as f64 / bucket_count as f64;
    let deviation = (mean * (1.0 - 1.0 / bucket_count as f64)).sqrt();
    let rows = (mean + 2.5 * deviation).ceil() as u64;
    usize::try_from(rows.saturating_add(1).min(count)).unwrap_or(usize::MAX)
}

/// The least key after `key`.
pub(crate) fn behind(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

#[cfg(test)]
mod tests;
