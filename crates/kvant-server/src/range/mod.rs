//! The body of a range response: records read piece by piece, as fast as the reader takes them.
//!
//! Invariants:
//! 1. At most one piece is held, whatever the length of the range: the next is read when the kernel
//!    has taken the last.
//! 2. After each piece other connections of the selector have their turn.
//! 3. The socket is corked only between two frames that are both at hand.
//! 4. After an error no further byte is produced: hyper breaks the body off without its last chunk
//!    and closes.

mod format;
mod reader;

pub(crate) use format::Format;
pub(crate) use reader::RangeReader;

use crate::counters;
use crate::dispatch::{self, Failure, Piece, ReadingPiece};
use crate::memory::Held;
use crate::pool::Later;
use crate::service::Call;
use crate::stores::Store;
use bytes::Bytes;
use hyper::body::Frame;
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::{Error, ErrorKind, Level, Result};
use reader::PIECE_BYTES;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What a range counts for in the memory budget before it meets a longer record: a piece, and as
/// much on its way to the kernel.
pub(crate) const RANGE_BYTES: u64 = 2 * PIECE_BYTES as u64;

/// A range on its way to a reader.
pub(crate) struct RangeBody {
    state: State,
    store: Arc<dyn Store>,
    /// The body's end has been announced to hyper.
    finished: bool,
    /// Others have had their turn since the last piece.
    rested: bool,
    memory: Held,
    call: Call,
    /// The reader knows the end of the body only by the end of the connection.
    until_close: bool,
}

enum State {
    /// The piece is here.
    Here(Box<RangeReader>),
    /// A worker reads the next.
    Away(Later),
    /// It broke off.
    Broken,
}

impl RangeBody {
    /// A range whose first piece has been read.
    pub(crate) fn new(
        reader: Box<RangeReader>,
        store: Arc<dyn Store>,
        memory: Held,
        call: &Call,
        until_close: bool,
    ) -> RangeBody {
        let mut body = RangeBody {
            state: State::Broken,
            store,
            finished: false,
            rested: false,
            memory,
            call: call.clone(),
            until_close,
        };
        body.take(reader);
        body
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let _tag = tag::enter_at(Activity::Range, Stage::Respond);
        ready!(self.poll_piece(cx))?;
        let State::Here(reader) = &mut self.state else {
            return Poll::Ready(None);
        };
        let frame = reader.next_frame();
        self.finished = reader.has_ended() && reader.is_taken();
        self.call.socket.cork(!reader.is_taken());
        Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    /// Waits until a frame is at hand, or there will be none.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            match &mut self.state {
                State::Here(reader) if !reader.is_taken() || reader.has_ended() => {
                    return Poll::Ready(Ok(()));
                }
                State::Here(_) if !self.rested || self.call.socket.is_blocked() => {
                    self.rested = true;
                    self.call.socket.cork(false);
                    if !self.call.socket.is_blocked() {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
                State::Here(_) => {
                    let State::Here(reader) = std::mem::replace(&mut self.state, State::Broken)
                    else {
                        unreachable!("it was here just now");
                    };
                    match dispatch::read_piece(&self.call.selector, &*self.store, reader) {
                        ReadingPiece::Done(piece) => self.took(piece)?,
                        ReadingPiece::Later(later) => self.state = State::Away(later),
                    }
                }
                State::Away(later) => {
                    let done = ready!(Pin::new(later).poll(cx));
                    let piece = dispatch::piece(&self.call.selector, &*self.store, done);
                    self.took(piece)?;
                }
                State::Broken => return Poll::Ready(Ok(())),
            }
        }
    }

    fn took(&mut self, piece: Piece) -> Result<()> {
        let error = match piece.result {
            Ok(()) => {
                self.call.socket.note(|trace| trace.read = piece.work.read);
                self.take(piece.reader);
                return Ok(());
            }
            Err(Failure::Storage(error)) => error,
            // Only a server that stops refuses what has been begun.
            Err(Failure::Refused(_)) => Error::new(ErrorKind::Closed, "the server stops"),
        };
        self.state = State::Broken;
        Err(self.broken_off(error, piece.reader.read_count()))
    }

    fn take(&mut self, reader: Box<RangeReader>) {
        self.rested = false;
        self.memory.resize(RANGE_BYTES.max(reader.piece_bytes_held()));
        self.state = State::Here(reader);
    }

    fn broken_off(&mut self, error: Error, read_count: u64) -> Error {
        self.call.socket.cork(false);
        if self.until_close {
            self.call.socket.reset_on_close();
        }
        counters::add(&self.call.selector.counters.ranges_aborted, 1);
        self.call.selector.shared.log.event(
            Level::Error,
            "range_aborted",
            &[("error", &error), ("record_count", &read_count)],
        );
        error
    }
}

impl Drop for RangeBody {
    fn drop(&mut self) {
        self.call.socket.cork(false);
    }
}
