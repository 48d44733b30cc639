//! Access of a read to blocks that are not in the cache: whether it may block, and what it touched.
//!
//! Blocking and non-blocking point reads are the same code, compiled for each [`PointRead`]. Ranges
//! always block.

use super::file_reader::FileReader;
use super::stored::{self, BlockSpan};
use kvant_base::Error;
use kvant_base::lock::NamedMutex;

/// Blocks longer than this, in the file or decompressed, are left to readers that may block even if
/// the page cache holds them: copying and checking one would take too long for an event loop.
const TRY_READ_BYTES_MAX: u32 = 256 << 10;

/// What a read touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTrace {
    /// Tables that a point read searched after their filter, or that a range entered.
    pub table_count: u32,
    /// Data blocks searched.
    pub block_count: u32,
    /// Blocks of data, index or filter that were not in the block cache.
    pub block_read_count: u32,
    /// Bytes of these blocks in their files.
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

/// The trace that all cursors of one range share. One thread at a time uses them.
pub(crate) struct RangeTrace(NamedMutex<ReadTrace>);

impl Default for RangeTrace {
    fn default() -> RangeTrace {
        RangeTrace(NamedMutex::new("range_trace", ReadTrace::default()))
    }
}

impl RangeTrace {
    pub(super) fn add(&self, more: ReadTrace) {
        self.0.lock().add(more);
    }

    pub(crate) fn get(&self) -> ReadTrace {
        *self.0.lock()
    }
}

/// Result of a step of the point read `R`.
pub(crate) type ReadResult<T, R> = Result<T, <R as PointRead>::Stop>;

/// How a point read obtains blocks that are not in the block cache.
pub(crate) trait PointRead {
    /// Why a read ends without a result.
    type Stop: From<Error>;

    /// What this read has touched so far.
    fn trace(&mut self) -> &mut ReadTrace;

    /// Reads a block as stored.
    fn read_stored(&mut self, file: FileReader<'_>, span: BlockSpan)
    -> Result<Vec<u8>, Self::Stop>;
}

/// Blocks until the disk has delivered.
#[derive(Default)]
pub(crate) struct Waiting(pub(crate) ReadTrace);

/// Stops where it would block.
#[derive(Default)]
pub(crate) struct NotWaiting(pub(crate) ReadTrace);

/// Blocks, but stops at blocks longer than this in the file.
pub(crate) struct Bounded {
    pub(crate) trace: ReadTrace,
    pub(crate) block_bytes_max: u32,
}

/// Why a read that may not block for every block ends without a result.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Error),
    /// The next block has so many bytes in the file.
    NeedsDisk(u32),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl PointRead for Waiting {
    type Stop = Error;

    #[inline]
    fn trace(&mut self) -> &mut ReadTrace {
        &mut self.0
    }

    fn read_stored(&mut self, file: FileReader<'_>, span: BlockSpan) -> Result<Vec<u8>, Error> {
        file.read(span)
    }
}

impl PointRead for NotWaiting {
    type Stop = Stop;

    #[inline]
    fn trace(&mut self) -> &mut ReadTrace {
        &mut self.0
    }

    fn read_stored(&mut self, file: FileReader<'_>, span: BlockSpan) -> Result<Vec<u8>, Stop> {
        if span.stored_bytes <= TRY_READ_BYTES_MAX
            && let Some(stored) = file.try_read(span)?
            && !stored::is_valid_and_longer(
                &stored,
                span.offset_bytes,
                u64::from(TRY_READ_BYTES_MAX),
            )
        {
            return Ok(stored);
        }
        Err(Stop::NeedsDisk(span.stored_bytes))
    }
}

impl PointRead for Bounded {
    type Stop = Stop;

    #[inline]
    fn trace(&mut self) -> &mut ReadTrace {
        &mut self.trace
    }

    fn read_stored(&mut self, file: FileReader<'_>, span: BlockSpan) -> Result<Vec<u8>, Stop> {
        if span.stored_bytes > self.block_bytes_max {
            return Err(Stop::NeedsDisk(span.stored_bytes));
        }
        Ok(file.read(span)?)
    }
}
