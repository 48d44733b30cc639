//! Pages of buckets, as they come in a response.

use crate::session::{bucket_number, unreadable};
use bytes::Bytes;
use kvant_base::Result;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Row {
    pub(crate) key: Bytes,
    /// `None`: it is read when its turn comes.
    pub(crate) value: Option<Bytes>,
    /// Wall milliseconds since 1970 at which the value expires, where the range reads that.
    pub(crate) expires_at_ms: Option<u64>,
    /// Bytes that nothing but this row keeps.
    pub(crate) own_bytes: usize,
    /// In the last row of a page: bytes that nothing keeps after all pages of the response.
    pub(crate) response_bytes: Option<Arc<usize>>,
}

/// The next rows of a bucket.
pub(crate) struct Page {
    pub(crate) bucket: usize,
    pub(crate) rows: VecDeque<Row>,
    /// Whether the bucket has no more.
    pub(crate) is_last: bool,
}

/// The pages of one response, or of several.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) pages: Vec<Page>,
    pub(crate) bytes: usize,
    /// The longest row; 0 without values.
    pub(crate) row_bytes_max: usize,
    /// At most so many rows were asked for.
    pub(crate) asked_rows: usize,
}

/// Pages whose rows are being read.
pub(crate) struct Unread {
    pages: Vec<Page>,
    /// The most rows of a page.
    row_count: usize,
    /// The page of the last row.
    at: usize,
    row_bytes_max: usize,
}

impl Row {
    /// Bytes that nothing keeps once this row, the next of its bucket, is gone.
    pub(crate) fn freed_bytes(&mut self) -> usize {
        let response_bytes = self.response_bytes.take().and_then(Arc::into_inner);
        self.own_bytes + response_bytes.unwrap_or(0)
    }
}

impl Pages {
    pub(crate) fn extend(&mut self, other: Pages) {
        self.pages.extend(other.pages);
        self.bytes += other.bytes;
        self.row_bytes_max = self.row_bytes_max.max(other.row_bytes_max);
        self.asked_rows += other.asked_rows;
    }
}

impl Unread {
    /// Pages of at most `row_count` rows each, of a response of `rows` rows.
    pub(crate) fn new(
        buckets: impl ExactSizeIterator<Item = usize>,
        row_count: usize,
        rows: usize,
    ) -> Unread {
        // Each page has room for its share: for all rows of the response, all of them together
        // would have room for that many times its bytes.
        let likely_rows = rows.div_ceil(buckets.len()).min(row_count);
        let page =
            |bucket| Page { bucket, rows: VecDeque::with_capacity(likely_rows), is_last: true };
        let pages = buckets.map(page).collect();
        Unread { pages, row_count, at: 0, row_bytes_max: 0 }
    }

    /// Adds the next row of a bucket. Those of a bucket come one after another.
    pub(crate) fn add(&mut self, bucket: i32, row: Row) -> Result<()> {
        let is_of = |page: &Page| bucket_number(page.bucket) == bucket;
        if !is_of(&self.pages[self.at]) {
            let found = self.pages.iter().position(is_of);
            self.at = found.ok_or_else(|| unreadable("a row of another bucket"))?;
        }
        let value_bytes = row.value.as_ref().map(Bytes::len);
        let row_bytes = value_bytes.map_or(0, |value_bytes| row.key.len() + value_bytes);
        self.row_bytes_max = self.row_bytes_max.max(row_bytes);
        self.pages[self.at].rows.push_back(row);
        Ok(())
    }

    /// The pages, of a response whose rows had so many bytes.
    pub(crate) fn read(mut self, rows_bytes: usize) -> Pages {
        let rows: usize = self.pages.iter().map(|page| page.rows.len()).sum();
        let bytes = rows_bytes + rows * size_of::<Row>();
        let response_bytes = Arc::new(bytes);
        for page in &mut self.pages {
            page.is_last = page.rows.len() < self.row_count;
            if let Some(last) = page.rows.back_mut() {
                last.response_bytes = Some(Arc::clone(&response_bytes));
            }
        }
        Pages {
            asked_rows: self.pages.len() * self.row_count,
            // Without rows there is none to free them.
            bytes: if rows > 0 { bytes } else { 0 },
            row_bytes_max: self.row_bytes_max,
            pages: self.pages,
        }
    }
}

#[cfg(test)]
mod tests;
