//! The body of a range response: records read piece by piece, as fast as the reader takes them.
//!
//! Invariants:
//! 1. At most one piece ([`PIECE_BYTES`], or one record where that is longer) is held, whatever the length of the range: the next
//!    is read when the kernel has taken the last.
//! 2. After each piece other connections of the selector have their turn.
//! 3. The socket is corked only between two frames that are both at hand.
//! 4. After an error no further byte is produced: hyper breaks the body off without its last chunk and closes.
//!
//! In the plain format each record is a frame, which hyper makes a chunk.

use crate::counters;
use crate::memory::Held;
use crate::service::Call;
use crate::stores::Records;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{GetAll, HeaderValue};
use hyper::body::Frame;
use kvant_base::{Error, Level, Result};
use std::collections::VecDeque;
use std::task::{Context, Poll};

/// Bytes of records that are read at once.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// What a range counts for in the memory budget before it meets a longer record: a piece, and as much on its way to the kernel.
pub(crate) const RANGE_BYTES: u64 = 2 * PIECE_BYTES as u64;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `KEY\nVALUE`, a chunk each.
    Plain,
    /// A JSON object a line.
    JsonLines,
    /// Lengths, key and value in binary; an end record closes the stream.
    Binary,
}

/// A range on its way to a reader.
pub(crate) struct RangeBody {
    records: Box<dyn Records>,
    format: Format,
    /// Records that may still be read.
    left_count: u64,
    read_count: u64,
    piece: Bytes,
    /// Lengths of the frames in `piece`.
    frames: VecDeque<usize>,
    /// The last record is in `piece` or gone.
    ended: bool,
    /// The body's end has been announced to hyper.
    finished: bool,
    /// Others have had their turn since the last piece.
    rested: bool,
    memory: Held,
    call: Call,
    /// The reader knows the end of the body only by the end of the connection.
    until_close: bool,
}

impl RangeBody {
    /// A range of at most `limit` records, with its first piece read.
    pub(crate) fn open(
        records: Box<dyn Records>,
        format: Format,
        limit: Option<u64>,
        memory: Held,
        call: &Call,
        until_close: bool,
    ) -> Result<RangeBody> {
        let mut body = RangeBody {
            records,
            format,
            left_count: limit.unwrap_or(u64::MAX),
            read_count: 0,
            piece: Bytes::new(),
            frames: VecDeque::new(),
            ended: false,
            finished: false,
            rested: false,
            memory,
            call: call.clone(),
            until_close,
        };
        body.read_piece()?;
        Ok(body)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        if self.frames.is_empty() && !self.ended {
            if !self.rested || self.call.socket.is_blocked() {
                self.rested = true;
                self.call.socket.cork(false);
                if !self.call.socket.is_blocked() {
                    cx.waker().wake_by_ref();
                }
                return Poll::Pending;
            }
            if let Err(error) = self.read_piece() {
                return Poll::Ready(Some(Err(self.broken_off(error))));
            }
        }
        let frame = self.frames.pop_front().map(|bytes| self.piece.split_to(bytes));
        self.finished = self.ended && self.frames.is_empty();
        self.call.socket.cork(!self.frames.is_empty());
        Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn read_piece(&mut self) -> Result<()> {
        self.rested = false;
        let mut piece = BytesMut::new();
        while piece.len() < PIECE_BYTES {
            let record = if self.left_count > 0 {
                self.records.next()?
            } else {
                None
            };
            let Some((key, value)) = record else {
                self.ended = true;
                break;
            };
            let start = piece.len();
            // Records of one piece tend to be alike: room for a few more saves copying them again and again.
            let record_bytes = key.len() + value.len() + 16;
            if piece.capacity() - start < record_bytes {
                piece.reserve(record_bytes.max((start + record_bytes).min(PIECE_BYTES)));
            }
            self.format.write(&mut piece, key, value);
            if self.format == Format::Plain {
                self.frames.push_back(piece.len() - start);
            }
            self.left_count -= 1;
            self.read_count += 1;
        }
        if self.ended && self.format == Format::Binary {
            piece.put_u32_le(u32::MAX);
            piece.put_u64_le(self.read_count);
        }
        if self.format != Format::Plain && !piece.is_empty() {
            self.frames.push_back(piece.len());
        }
        self.memory.resize(RANGE_BYTES.max(piece.capacity() as u64));
        self.piece = piece.freeze();
        Ok(())
    }

    fn broken_off(&mut self, error: Error) -> Error {
        self.call.socket.cork(false);
        if self.until_close {
            self.call.socket.reset_on_close();
        }
        counters::add(&self.call.selector.counters.ranges_aborted, 1);
        self.call.selector.shared.log.event(
            Level::Error,
            "range_aborted",
            &[("error", &error), ("record_count", &self.read_count)],
        );
        error
    }
}

impl Drop for RangeBody {
    fn drop(&mut self) {
        self.call.socket.cork(false);
    }
}

impl Format {
    /// The format that `Accept` headers ask for; the plain one when they name none of ours.
    pub(crate) fn accepted(accept: GetAll<'_, HeaderValue>) -> Format {
        let ranges = accept
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        let mut media_types = ranges.map(|range| range.split(';').next().unwrap_or("").trim());
        let ours = |media_type: &str| {
            [Format::JsonLines, Format::Binary]
                .into_iter()
                .find(|format| media_type.eq_ignore_ascii_case(format.media_type()))
        };
        media_types.find_map(ours).unwrap_or(Format::Plain)
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Format::Plain => "application/octet-stream",
            Format::JsonLines => "application/x-ndjson",
            Format::Binary => "application/vnd.kvant.records",
        }
    }

    fn write(self, out: &mut BytesMut, key: &[u8], value: &[u8]) {
        match self {
            Format::Plain => {
                out.extend_from_slice(key);
                out.put_u8(b'\n');
                out.extend_from_slice(value);
            }
            Format::JsonLines => {
                out.put_u8(b'{');
                write_json_member(out, "key", key);
                out.put_u8(b',');
                write_json_member(out, "value", value);
                out.extend_from_slice(b"}\n");
            }
            Format::Binary => {
                // Both are bounded by 1 GiB (`limits`), so neither is the end mark.
                out.put_u32_le(key.len() as u32);
                out.put_u32_le(value.len() as u32);
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
        }
    }
}

/// Text as it is, other bytes as Base64 under another name.
fn write_json_member(out: &mut BytesMut, name: &str, bytes: &[u8]) {
    out.put_u8(b'"');
    out.extend_from_slice(name.as_bytes());
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            out.extend_from_slice(b"\":");
            serde_json::to_writer(out.writer(), text).expect("a string serialises, and memory takes it");
        }
        Err(_) => {
            out.extend_from_slice(b"_base64\":\"");
            out.extend_from_slice(BASE64.encode(bytes).as_bytes());
            out.put_u8(b'"');
        }
    }
}
