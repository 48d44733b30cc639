//! Access of a read to blocks that are not in the cache: whether it may block, and what it touched.

use super::file_reader::FileReader;
use super::spares::Spares;
use super::stored::{self, BlockSpan};
use kvant_base::lock::NamedMutex;
use kvant_base::{Error, ErrorKind};

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
    /// Time of the reads among them that could wait for the disk, in nanoseconds.
    pub block_read_ns: u64,
}

impl ReadTrace {
    /// Adds what another read touched.
    #[inline]
    pub fn add(&mut self, other: ReadTrace) {
        self.table_count += other.table_count;
        self.block_count += other.block_count;
        self.block_read_count += other.block_read_count;
        self.block_read_bytes += other.block_read_bytes;
        self.block_read_ns += other.block_read_ns;
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

/// Longest block in its file that a point read waits for.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    /// None: the read ends where it would block.
    Never,
    UpTo(u32),
}

impl Wait {
    pub(crate) const ALWAYS: Wait = Wait::UpTo(u32::MAX);
}

/// A point read: how it obtains blocks that are not in the block cache, and what it has touched.
pub(crate) struct PointRead {
    wait: Wait,
    pub(crate) trace: ReadTrace,
}

/// Why a point read ends without a result.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Error),
    /// The read does not wait for the next block, which has so many bytes in the file.
    NeedsDisk(u32),
}

pub(crate) type PointResult<T> = Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Error {
        match stop {
            Stop::Failed(error) => error,
            Stop::NeedsDisk(bytes) => {
                Error::new(ErrorKind::Io, format!("a block of {bytes} bytes is not in memory"))
            }
        }
    }
}

impl PointRead {
    #[inline]
    pub(crate) fn new(wait: Wait) -> PointRead {
        PointRead { wait, trace: ReadTrace::default() }
    }

    /// Reads a block as it is stored, into memory of `spares`.
    pub(super) fn fetch(
        &mut self,
        file: FileReader<'_>,
        span: BlockSpan,
        spares: &Spares,
    ) -> PointResult<Vec<u8>> {
        let memory = || spares.take_for_stored(span.stored_bytes as usize);
        match self.wait {
            Wait::UpTo(bytes_max) if span.stored_bytes <= bytes_max => {
                let (stored, read_ns) = file.read_timed(span, memory())?;
                self.trace.block_read_ns += read_ns;
                Ok(stored)
            }
            Wait::Never if span.stored_bytes <= TRY_READ_BYTES_MAX => {
                let bytes_max = u64::from(TRY_READ_BYTES_MAX);
                let is_long = |stored: &Vec<u8>| {
                    stored::is_valid_and_longer(stored, span.offset_bytes, bytes_max)
                };
                let stored = file.try_read(span, memory())?.filter(|stored| !is_long(stored));
                stored.ok_or(Stop::NeedsDisk(span.stored_bytes))
            }
            _ => Err(Stop::NeedsDisk(span.stored_bytes)),
        }
    }
}
