//! A read on its way through the tables: what it touches, and whether it may wait for the disk.
//!
//! Point reads that may wait and those that may not are the same code, compiled twice: the former
//! pay nothing for the latter. Ranges always wait.

use super::reader::Table;
use super::stored::{self, BlockSpan};
use kvant_base::Error;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Blocks that are longer, in the file or decompressed, each a large value, are left to readers
/// that may block even where the system has them in memory: to copy and check them is more than a
/// turn of an event loop should take.
const TRY_READ_BYTES_MAX: u32 = 256 << 10;

/// What reads touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTrace {
    /// Tables whose filter let the read through; of a range, tables that it has entered.
    pub table_count: u32,
    /// Data blocks that were looked into.
    pub block_count: u32,
    /// Blocks, of data, index or filter, that were not in the block cache.
    pub block_read_count: u32,
    /// What these blocks take in their files.
    pub block_read_bytes: u64,
}

impl ReadTrace {
    /// Adds what another read touched.
    #[inline]
    pub fn add(&mut self, other: ReadTrace) {
        self.table_count += other.table_count;
        self.block_count += other.block_count;
        self.block_read_count += other.block_read_count;
        self.block_read_bytes += other.block_read_bytes;
    }

    pub(super) fn count_read(&mut self, bytes: u32) {
        self.block_read_count += 1;
        self.block_read_bytes += u64::from(bytes);
    }
}

/// What the cursors of one range touch together. They are used by one thread at a time.
#[derive(Default)]
pub(crate) struct RangeTrace {
    table_count: AtomicU32,
    block_count: AtomicU32,
    block_read_count: AtomicU32,
    block_read_bytes: AtomicU64,
}

impl RangeTrace {
    pub(super) fn add(&self, more: ReadTrace) {
        self.table_count.fetch_add(more.table_count, Relaxed);
        self.block_count.fetch_add(more.block_count, Relaxed);
        self.block_read_count.fetch_add(more.block_read_count, Relaxed);
        self.block_read_bytes.fetch_add(more.block_read_bytes, Relaxed);
    }

    pub(crate) fn get(&self) -> ReadTrace {
        ReadTrace {
            table_count: self.table_count.load(Relaxed),
            block_count: self.block_count.load(Relaxed),
            block_read_count: self.block_read_count.load(Relaxed),
            block_read_bytes: self.block_read_bytes.load(Relaxed),
        }
    }
}

/// What a step of a point read `R` gives.
pub(crate) type ReadResult<T, R> = Result<T, <R as PointRead>::Stop>;

/// How a point read comes by blocks that are not in the block cache.
pub(crate) trait PointRead {
    /// Why a read ends without an answer.
    type Stop: From<Error>;

    /// What this read has touched so far.
    fn trace(&mut self) -> &mut ReadTrace;

    /// The block at `span` as it lies in the file.
    fn read_stored(&mut self, table: &Table, span: BlockSpan) -> Result<Vec<u8>, Self::Stop>;
}

/// Waits for the disk.
#[derive(Default)]
pub(crate) struct Waiting(pub(crate) ReadTrace);

impl PointRead for Waiting {
    type Stop = Error;

    #[inline]
    fn trace(&mut self) -> &mut ReadTrace {
        &mut self.0
    }

    fn read_stored(&mut self, table: &Table, span: BlockSpan) -> Result<Vec<u8>, Error> {
        let stored = table.reader().read(span.offset_bytes, span.stored_bytes as usize)?;
        self.0.count_read(span.stored_bytes);
        Ok(stored)
    }
}

/// Gives up where it would have to wait.
#[derive(Default)]
pub(crate) struct NotWaiting(pub(crate) ReadTrace);

/// Waits for the disk, but not for blocks that are longer than this in the file.
pub(crate) struct Bounded {
    pub(crate) trace: ReadTrace,
    pub(crate) block_bytes_max: u32,
}

/// Why a read that may not wait for everything ends without a result.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Error),
    /// A block has to be read that has so many bytes in the file.
    NeedsDisk(u32),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl PointRead for NotWaiting {
    type Stop = Stop;

    #[inline]
    fn trace(&mut self) -> &mut ReadTrace {
        &mut self.0
    }

    fn read_stored(&mut self, table: &Table, span: BlockSpan) -> Result<Vec<u8>, Stop> {
        if span.stored_bytes <= TRY_READ_BYTES_MAX
            && let Some(stored) =
                table.reader().try_read(span.offset_bytes, span.stored_bytes as usize)?
            && !stored::is_sound_beyond(&stored, span.offset_bytes, u64::from(TRY_READ_BYTES_MAX))
        {
            self.0.count_read(span.stored_bytes);
            return Ok(stored);
        }
        Err(leave(table, span))
    }
}

impl PointRead for Bounded {
    type Stop = Stop;

    #[inline]
    fn trace(&mut self) -> &mut ReadTrace {
        &mut self.trace
    }

    fn read_stored(&mut self, table: &Table, span: BlockSpan) -> Result<Vec<u8>, Stop> {
        if span.stored_bytes > self.block_bytes_max {
            return Err(leave(table, span));
        }
        let stored = table.reader().read(span.offset_bytes, span.stored_bytes as usize)?;
        self.trace.count_read(span.stored_bytes);
        Ok(stored)
    }
}

/// Leaves a block to a reader that comes later, and misses it once more.
#[cold]
fn leave(table: &Table, span: BlockSpan) -> Stop {
    table.context.cache.take_back_miss(table.block_key(span));
    Stop::NeedsDisk(span.stored_bytes)
}
