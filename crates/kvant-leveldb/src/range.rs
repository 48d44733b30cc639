//! Records of a snapshot in key order, read in pieces.
//!
//! An iterator of LevelDB pins memtables and tables for as long as it lives, and a reader may pause
//! for any time. So records are copied piece by piece, each piece with an iterator of its own; in
//! between only the snapshot is kept, a number.
//!
//! Invariants:
//! 1. At most [`PIECE_BYTES_MAX`] and one record are held, and counted in the memory budget.
//! 2. No record of a piece is given before LevelDB has confirmed that it read all of the piece:
//!    its iterators step over blocks that they cannot read.

use crate::ffi::Snapshot;
use crate::status;
use kvant_base::{Consumer, MemoryBudget, Reservation, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// Keys and values of the first piece: a short range should read little more than it gives.
const PIECE_BYTES_MIN: usize = 4 << 10;
/// And of the longest: each further piece is four times as long as the one before.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Records `start <= key < end` of one moment.
pub struct Range {
    dir: PathBuf,
    snapshot: Snapshot,
    /// Where the next piece starts: at this key, or after it.
    from: Vec<u8>,
    is_after: bool,
    end: Option<Box<[u8]>>,
    has_ended: bool,
    piece_bytes: usize,
    /// Keys and values of the piece, one after another,
    bytes: Vec<u8>,
    /// and where key and value of each record end.
    records: Vec<(usize, usize)>,
    /// The next record to give.
    next: usize,
    memory: Reservation,
}

impl Range {
    pub(crate) fn new(
        dir: PathBuf,
        snapshot: Snapshot,
        start: &[u8],
        end: Option<&[u8]>,
        budget: &Arc<MemoryBudget>,
    ) -> Range {
        Range {
            dir,
            snapshot,
            from: start.to_vec(),
            is_after: false,
            end: end.map(Box::from),
            has_ended: false,
            piece_bytes: PIECE_BYTES_MIN,
            bytes: Vec::new(),
            records: Vec::new(),
            next: 0,
            memory: budget.reserve(Consumer::Iterators, 0),
        }
    }

    /// The next record, key and value, or `None` at the end.
    ///
    /// # Errors
    /// LevelDB cannot read all records from here on. The next call tries again.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the range")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.next == self.records.len() {
            self.read_piece()?;
        }
        let Some(&(key_end, value_end)) = self.records.get(self.next) else {
            return Ok(None);
        };
        let start = self.next.checked_sub(1).map_or(0, |before| self.records[before].1);
        self.next += 1;
        Ok(Some((&self.bytes[start..key_end], &self.bytes[key_end..value_end])))
    }

    fn read_piece(&mut self) -> Result<()> {
        self.records.clear();
        self.next = 0;
        match self.bytes.capacity() > 2 * PIECE_BYTES_MAX {
            // A long value was there.
            true => self.bytes = Vec::new(),
            false => self.bytes.clear(),
        }
        if self.has_ended {
            return Ok(());
        }
        // Blocks of long ranges are read once and should not replace others.
        let mut iter = self.snapshot.iter(!self.is_after);
        iter.seek(&self.from);
        if self.is_after && iter.record().is_some_and(|(key, _)| key == self.from) {
            iter.advance();
        }
        let mut has_ended = false;
        while self.bytes.len() < self.piece_bytes {
            let end = self.end.as_deref();
            let is_within = |key: &[u8]| end.is_none_or(|end| key < end);
            let Some((key, value)) = iter.record().filter(|(key, _)| is_within(key)) else {
                has_ended = true;
                break;
            };
            self.bytes.extend_from_slice(key);
            let key_end = self.bytes.len();
            self.bytes.extend_from_slice(value);
            self.records.push((key_end, self.bytes.len()));
            iter.advance();
        }
        let status = iter.status();
        drop(iter);
        if let Err(text) = status {
            self.bytes.clear();
            self.records.clear();
            return Err(status::error(&self.dir, &text));
        }
        self.has_ended = has_ended;
        if let Some(&(key_end, _)) = self.records.last() {
            let start = self.records.iter().rev().nth(1).map_or(0, |record| record.1);
            self.from.clear();
            self.from.extend_from_slice(&self.bytes[start..key_end]);
            self.is_after = true;
        }
        self.piece_bytes = (4 * self.piece_bytes).min(PIECE_BYTES_MAX);
        self.memory.resize(self.bytes.capacity() as u64);
        Ok(())
    }
}
