//! Blocks as stored in the file: payload, compression type, checksum (`docs/formats/table.md`,
//! section 1).
//!
//! Invariants:
//! 1. [`open_owned`] and its like verify the checksum, which covers the block's offset in the file.
//! 2. A decompressed length is checked before memory is allocated for it.

use super::spares::{self, Spares};
use crate::options::Compression;
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Result, limits, varint};
use kvant_env::posix::Buffer;
use lz4::block as lz4;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// Type and checksum that follow every payload.
pub(super) const BLOCK_TRAILER_BYTES: usize = 5;
/// Longest decompressed block: the longest value with its key, and room for a block's other fields.
pub(super) const RAW_BYTES_MAX: u64 = limits::VALUE_BYTES_MAX_LIMIT + (4 << 20);
/// Longer blocks are stored uncompressed: compression would double the memory of writing and
/// reading them.
const COMPRESS_BYTES_MAX: usize = 64 << 20;
/// Largest expansion by LZ4, which encodes up to 255 bytes of length in one byte.
const LZ4_RATIO_MAX: u64 = 255;
const ZSTD_LEVEL: i32 = 1;
/// Blocks in a row that may not shrink before others are skipped.
const FAILURES_TOLERATED: u32 = 4;
/// One block in two to this power is tried where none shrinks.
const SKIP_DOUBLINGS_MAX: u32 = 4;

const _: () = assert!(limits::KEY_BYTES_MAX as u64 + (1 << 20) < 4 << 20);

/// Why stored bytes are invalid. The table adds file and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

pub(super) type Parsed<T> = std::result::Result<T, Malformed>;

/// The place of a block: its offset, and its length with type and checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockSpan {
    pub(super) offset_bytes: u64,
    pub(super) stored_bytes: u32,
}

impl BlockSpan {
    pub(super) fn end_bytes(self) -> u64 {
        self.offset_bytes.saturating_add(u64::from(self.stored_bytes))
    }
}

/// Compresses blocks, reusing its buffers.
pub(super) struct BlockCompressor {
    compression: Compression,
    attempts: Attempts,
    zstd: Option<Compressor<'static>>,
    /// The length of the raw block, encoded.
    head: Vec<u8>,
    /// Only grows, so that its memory is zeroed once; the front holds the last result.
    compressed: Vec<u8>,
}

impl BlockCompressor {
    pub(super) fn new(compression: Compression) -> BlockCompressor {
        BlockCompressor {
            compression,
            attempts: Attempts::default(),
            zstd: None,
            head: Vec::new(),
            compressed: Vec::new(),
        }
    }

    /// The payload to store for `raw`, and its type: compressed if that saves at least an eighth,
    /// and if it did for recent blocks.
    pub(super) fn compress<'a>(&'a mut self, raw: &'a [u8]) -> Result<(&'a [u8], Compression)> {
        if self.compression == Compression::None
            || raw.len() > COMPRESS_BYTES_MAX
            || !self.attempts.is_due()
        {
            return Ok((raw, Compression::None));
        }
        let stored_bytes = self.compress_into_buffer(raw)?;
        let has_shrunk = stored_bytes <= raw.len() - raw.len() / 8;
        self.attempts.note(has_shrunk);
        if has_shrunk {
            Ok((&self.compressed[..stored_bytes], self.compression))
        } else {
            Ok((raw, Compression::None))
        }
    }

    /// Fills the front of the buffer with a payload, and returns its length.
    fn compress_into_buffer(&mut self, raw: &[u8]) -> Result<usize> {
        let body_bytes_max = match self.compression {
            Compression::Zstd => zstd::zstd_safe::compress_bound(raw.len()),
            Compression::None | Compression::Lz4 => lz4::compress_bound(raw.len())
                .map_err(|e| codec_error("compress a block with LZ4", &e))?,
        };
        self.head.clear();
        varint::put_u64(&mut self.head, raw.len() as u64);
        let bytes_max = self.head.len() + body_bytes_max;
        if self.compressed.len() < bytes_max {
            self.compressed.resize(bytes_max, 0);
        }
        let (head, body) = self.compressed.split_at_mut(self.head.len());
        head.copy_from_slice(&self.head);
        let body_bytes = if self.compression == Compression::Zstd {
            let zstd = match &mut self.zstd {
                Some(zstd) => zstd,
                none => none.insert(
                    Compressor::new(ZSTD_LEVEL).map_err(|e| codec_error("set up Zstandard", &e))?,
                ),
            };
            zstd.compress_to_buffer(raw, body)
                .map_err(|e| codec_error("compress a block with Zstandard", &e))?
        } else {
            lz4::compress_to_buffer(raw, None, false, body)
                .map_err(|e| codec_error("compress a block with LZ4", &e))?
        };
        Ok(head.len() + body_bytes)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.compressed.capacity()
    }

    /// Frees the buffer if it is larger than `keep_bytes`.
    pub(super) fn release_above(&mut self, keep_bytes: usize) {
        if self.compressed.capacity() > keep_bytes {
            self.compressed = Vec::new();
        }
    }
}

/// Which blocks of a table are worth an attempt to compress them. After some in a row that did not
/// shrink, most are stored as they are, and one in a growing number is tried.
#[derive(Default)]
struct Attempts {
    /// In a row.
    failures: u32,
    /// Blocks to store as they are before the next attempt.
    skip: u32,
}

impl Attempts {
    /// Whether to try the next block.
    fn is_due(&mut self) -> bool {
        let is_due = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        is_due
    }

    fn note(&mut self, has_shrunk: bool) {
        self.failures = if has_shrunk { 0 } else { self.failures + 1 };
        let doublings = self.failures.saturating_sub(FAILURES_TOLERATED).min(SKIP_DOUBLINGS_MAX);
        self.skip = (1 << doublings) - 1;
    }
}

/// The bytes that follow `payload`, stored at `offset_bytes` of the file.
pub(super) fn trailer(
    payload: &[u8],
    compression: Compression,
    offset_bytes: u64,
) -> [u8; BLOCK_TRAILER_BYTES] {
    let crc = crc32c_masked(&[payload, &[compression as u8], &offset_bytes.to_le_bytes()]);
    let [a, b, c, d] = crc.to_le_bytes();
    [compression as u8, a, b, c, d]
}

/// Verifies the checksum of `stored`, read at `offset_bytes`, and decompresses the payload into
/// memory of `spares`. An uncompressed one keeps its own, if it fits.
pub(super) fn open_owned(
    mut stored: Vec<u8>,
    offset_bytes: u64,
    spares: &Spares,
) -> Parsed<Buffer> {
    let (payload, compression) = check(&stored, offset_bytes)?;
    let len = payload.len();
    let raw = match compression {
        Compression::None if spares::fits(stored.capacity(), len) => {
            stored.truncate(len);
            return Ok(stored.into());
        }
        Compression::None => copy_into(payload, spares.take(len)),
        _ => decompress(payload, compression, |len| spares.take(len))?,
    };
    spares.keep_from_stored(stored);
    Ok(raw)
}

/// As [`open_owned`], into what `memory` gives for a length. Its contents are lost.
pub(super) fn open_into(
    stored: &[u8],
    offset_bytes: u64,
    memory: impl FnOnce(usize) -> Buffer,
) -> Parsed<Buffer> {
    match check(stored, offset_bytes)? {
        (payload, Compression::None) => Ok(copy_into(payload, memory(payload.len()))),
        (payload, compression) => decompress(payload, compression, memory),
    }
}

fn copy_into(payload: &[u8], mut buffer: Buffer) -> Buffer {
    buffer.set_len(payload.len());
    buffer.copy_from_slice(payload);
    buffer
}

/// As [`open_owned`], for blocks that are never compressed.
pub(super) fn open_uncompressed(stored: &[u8], offset_bytes: u64) -> Parsed<&[u8]> {
    match check(stored, offset_bytes)? {
        (payload, Compression::None) => Ok(payload),
        _ => Err(Malformed("block is compressed, but must not be")),
    }
}

fn check(stored: &[u8], offset_bytes: u64) -> Parsed<(&[u8], Compression)> {
    let (payload, trailer_found) = stored
        .split_last_chunk::<BLOCK_TRAILER_BYTES>()
        .ok_or(Malformed("block is shorter than its trailer"))?;
    let compression = Compression::from_byte(trailer_found[0])
        .ok_or(Malformed("block has an unknown compression type"))?;
    if trailer(payload, compression, offset_bytes) != *trailer_found {
        return Err(Malformed("block checksum does not match"));
    }
    Ok((payload, compression))
}

/// Payload and type of `stored`. The checksum is not verified.
pub(super) fn split(stored: &[u8]) -> Option<(&[u8], Compression)> {
    let (payload, trailer) = stored.split_last_chunk::<BLOCK_TRAILER_BYTES>()?;
    Some((payload, Compression::from_byte(trailer[0])?))
}

/// Whether `stored` is a valid compressed block of more than `raw_bytes_max` decompressed.
pub(super) fn is_valid_and_longer(stored: &[u8], offset_bytes: u64, raw_bytes_max: u64) -> bool {
    // The checksum last: few blocks are so long.
    match stored.split_last_chunk::<BLOCK_TRAILER_BYTES>() {
        Some((mut payload, [1 | 2, ..])) => {
            let raw_bytes = varint::take_u64(&mut payload);
            raw_bytes.is_some_and(|raw_bytes| raw_bytes > raw_bytes_max)
                && check(stored, offset_bytes).is_ok()
        }
        _ => false,
    }
}

/// Decompresses in what `memory` gives for the length, whose contents are lost.
fn decompress(
    payload: &[u8],
    compression: Compression,
    memory: impl FnOnce(usize) -> Buffer,
) -> Parsed<Buffer> {
    let mut input = payload;
    let raw_bytes =
        varint::take_u64(&mut input).ok_or(Malformed("decompressed length is cut short"))?;
    let possible = match compression {
        Compression::Zstd => {
            Decompressor::upper_bound(input).is_some_and(|bound| bound as u64 == raw_bytes)
        }
        Compression::None | Compression::Lz4 => {
            // LZ4 counts in 31 bits.
            raw_bytes <= (input.len() as u64).saturating_mul(LZ4_RATIO_MAX)
                && i32::try_from(input.len()).is_ok()
        }
    };
    if raw_bytes > RAW_BYTES_MAX || !possible {
        return Err(Malformed("decompressed length is impossible"));
    }
    let mut raw = memory(raw_bytes as usize);
    raw.set_len(raw_bytes as usize);
    let written = match compression {
        Compression::Zstd => zstd_decompress(input, &mut raw),
        Compression::None | Compression::Lz4 => {
            lz4::decompress_to_buffer(input, Some(raw_bytes as i32), &mut raw).ok()
        }
    };
    if written != Some(raw.len()) {
        return Err(Malformed("block does not decompress to its length"));
    }
    Ok(raw)
}

/// Gives `buffer` a length, and any contents. What it holds is not zeroed anew.
pub(super) fn set_len(buffer: &mut Vec<u8>, len: usize) {
    if buffer.capacity() < len {
        *buffer = vec![0; len];
    } else {
        buffer.resize(len, 0);
    }
}

/// Decompresses with a context per thread: creating one costs more than decompressing a block.
fn zstd_decompress(input: &[u8], output: &mut [u8]) -> Option<usize> {
    thread_local! {
        static CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    CONTEXT.with_borrow_mut(|context| {
        if context.is_none() {
            *context = Decompressor::new().ok();
        }
        context.as_mut()?.decompress_to_buffer(input, output).ok()
    })
}

fn codec_error(action: &str, error: &dyn std::fmt::Display) -> kvant_base::Error {
    kvant_base::Error::new(kvant_base::ErrorKind::Io, format!("cannot {action}: {error}"))
}

#[cfg(test)]
mod tests;
