//! Reads a range piece by piece, on a selector or a worker.
//!
//! Invariant: at most one piece ([`PIECE_BYTES`], or one record where that is longer) is held,
//! whatever the length of the range, and what the engine has fetched from other machines.
//!
//! In the plain format each record is a frame, which hyper sends as a chunk; in the others each
//! piece is.

use crate::http::query::RangeQuery;
use crate::http::record_format::RecordFormat;
use crate::key::Key;
use crate::store::{ReadTrace, Records, RemoteStore, Store};
use bytes::{BufMut, Bytes, BytesMut};
use kvant_base::Result;
use kvant_base::tag::{self, Stage};
use std::collections::VecDeque;

/// Bytes of records that are read at once.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// A limit up to this is likely to be reached: room is made for all of its records at once.
const LIMIT_MEANT_MAX: usize = 1000;

pub(crate) struct RangeReader {
    records: Source,
    format: RecordFormat,
    /// Records that may still be read.
    left_count: u64,
    read_count: u64,
    piece: Bytes,
    /// Memory of `piece` until its last frame was taken.
    piece_bytes_held: usize,
    /// Lengths of the frames in `piece`.
    frames: VecDeque<usize>,
    /// The last record was read.
    ended: bool,
}

enum Source {
    Requested { start: Key, end: Option<Key> },
    Open(Box<dyn Records>),
}

impl RangeReader {
    pub(crate) fn new(query: RangeQuery, format: RecordFormat) -> RangeReader {
        // An end before the start: nothing to read.
        let is_empty = query.end.as_ref().is_some_and(|end| **end <= *query.start);
        RangeReader {
            records: Source::Requested { start: query.start, end: query.end },
            format,
            left_count: if is_empty { 0 } else { query.limit.unwrap_or(u64::MAX) },
            read_count: 0,
            piece: Bytes::new(),
            piece_bytes_held: 0,
            frames: VecDeque::new(),
            ended: false,
        }
    }

    /// Reads the next piece. The last one must have been taken.
    pub(crate) fn read_piece(&mut self, store: &dyn Store) -> Result<()> {
        let _tag = tag::stage(Stage::Merge);
        self.open(store)?;
        let mut piece = BytesMut::new();
        while piece.len() < PIECE_BYTES {
            let record = match &mut self.records {
                Source::Open(records) if self.left_count > 0 => records.next()?,
                _ => None,
            };
            let Some((key, value)) = record else {
                self.ended = !self.must_fetch();
                break;
            };
            let start = piece.len();
            let record_bytes = key.len() + value.len() + 16;
            if piece.capacity() - start < record_bytes {
                piece.reserve(room_after(start, record_bytes, self.left_count));
            }
            self.format.write(&mut piece, key, value);
            if self.format == RecordFormat::Plain {
                self.frames.push_back(piece.len() - start);
            }
            self.left_count -= 1;
            self.read_count += 1;
        }
        if self.ended && self.format == RecordFormat::Binary {
            piece.put_u32_le(u32::MAX);
            piece.put_u64_le(self.read_count);
        }
        if self.format != RecordFormat::Plain && !piece.is_empty() {
            self.frames.push_back(piece.len());
        }
        self.piece_bytes_held = piece.capacity();
        self.piece = piece.freeze();
        Ok(())
    }

    /// Fetches what the next piece needs from other machines.
    pub(crate) async fn fetch(&mut self, store: &dyn RemoteStore) -> Result<()> {
        self.open(store)?;
        match &mut self.records {
            Source::Open(records) if self.left_count > 0 && records.must_fetch() => {
                records.fetch().await
            }
            _ => Ok(()),
        }
    }

    /// Begins the range, if it has not begun.
    pub(crate) fn open(&mut self, store: &dyn Store) -> Result<()> {
        if self.left_count > 0
            && let Source::Requested { start, end } = &self.records
        {
            let range = store.range(start, end.as_deref(), self.left_count)?;
            self.records = Source::Open(range);
        }
        Ok(())
    }

    fn must_fetch(&self) -> bool {
        self.left_count > 0
            && matches!(&self.records, Source::Open(records) if records.must_fetch())
    }

    pub(crate) fn trace(&self) -> ReadTrace {
        match &self.records {
            Source::Requested { .. } => ReadTrace::default(),
            Source::Open(records) => records.trace(),
        }
    }

    /// Whether a piece was read: its client has half a response, so it is not refused any more.
    pub(crate) fn is_begun(&self) -> bool {
        matches!(self.records, Source::Open(_))
    }

    pub(crate) fn next_frame(&mut self) -> Option<Bytes> {
        let bytes = self.frames.pop_front()?;
        Some(self.piece.split_to(bytes))
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn read_count(&self) -> u64 {
        self.read_count
    }

    /// Memory of the piece, and of records that were fetched for later ones, or are likely to be.
    pub(crate) fn held_bytes(&self) -> u64 {
        let fetched_bytes = match &self.records {
            Source::Requested { .. } => 0,
            Source::Open(records) if self.left_count == 0 || self.ended => records.held_bytes(),
            Source::Open(records) => records.held_bytes().max(records.likely_bytes()),
        };
        (self.piece_bytes_held + fetched_bytes) as u64
    }
}

/// Room for the next record and those after it, which tend to have the same length, in a piece of
/// `piece_bytes`: enough for the limit of a range, or else a few times its length, so that records
/// are not copied repeatedly.
fn room_after(piece_bytes: usize, record_bytes: usize, left_count: u64) -> usize {
    let wanted = match usize::try_from(left_count) {
        Ok(count @ ..=LIMIT_MEANT_MAX) => count * record_bytes,
        _ => 4 * (piece_bytes + record_bytes),
    };
    // The last record of a piece goes beyond its end.
    let most = (PIECE_BYTES + PIECE_BYTES / 4).saturating_sub(piece_bytes);
    wanted.min(most).max(record_bytes)
}
