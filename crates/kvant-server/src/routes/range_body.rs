//! The body of a range response: records read piece by piece, as fast as the reader takes them.
//!
//! Invariants:
//! 1. At most one piece is held, whatever the length of the range, beside what the engine has
//!    fetched from other machines: the next is read when the kernel has taken the last.
//! 2. Before each piece other connections of the selector have their turn.
//! 3. The socket is corked only between two frames of one piece.
//! 4. After an error no further byte is produced: hyper breaks the body off without its last chunk
//!    and closes the connection.

use crate::conn::Call;
use crate::http::response::BodyStream;
use crate::memory::Held;
use crate::store::Backend;
use crate::work::range_reader::{PIECE_BYTES, RangeReader};
use crate::work::{Failure, Piece};
use bytes::Bytes;
use hyper::body::Frame;
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::{Error, ErrorKind, Level, Result};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// What a range counts for in the memory budget before it holds more: a piece, and as much on its
/// way to the kernel.
pub(super) const RANGE_BYTES: u64 = 2 * PIECE_BYTES as u64;

pub(super) struct RangeBody {
    state: State,
    store: Backend,
    is_finished: bool,
    /// Other connections have had their turn since the last piece.
    has_yielded: bool,
    memory: Held,
    call: Call,
    /// The end of the connection is the end of the body.
    until_close: bool,
}

enum State {
    /// The piece was read.
    Here(Box<RangeReader>),
    /// The next piece is being read.
    Reading(Pin<Box<dyn Future<Output = Piece>>>),
    Broken,
}

impl RangeBody {
    /// A range whose first piece was read.
    pub(super) fn new(
        reader: Box<RangeReader>,
        store: Backend,
        memory: Held,
        call: &Call,
        until_close: bool,
    ) -> RangeBody {
        let mut body = RangeBody {
            state: State::Broken,
            store,
            is_finished: false,
            has_yielded: false,
            memory,
            call: call.clone(),
            until_close,
        };
        body.take(reader);
        body
    }

    /// Waits for the next frame, or for the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            match &mut self.state {
                State::Here(reader) if !reader.is_taken() || reader.has_ended() => {
                    return Poll::Ready(Ok(()));
                }
                State::Here(_) if !self.has_yielded || self.call.socket.is_blocked() => {
                    self.has_yielded = true;
                    self.call.socket.cork(false);
                    if !self.call.socket.is_blocked() {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
                State::Reading(reading) => {
                    let piece = ready!(reading.as_mut().poll(cx));
                    self.finish_piece(piece)?;
                }
                State::Broken => return Poll::Ready(Ok(())),
                State::Here(_) => {
                    if let State::Here(reader) = std::mem::replace(&mut self.state, State::Broken) {
                        let storage = Rc::clone(&self.call.cx.storage);
                        let reading = storage.read_piece(self.store.clone(), reader);
                        self.state = State::Reading(Box::pin(reading));
                    }
                }
            }
        }
    }

    fn finish_piece(&mut self, piece: Piece) -> Result<()> {
        let error = match piece.result {
            Ok(()) => {
                self.call.socket.update_trace(|trace| trace.read = piece.work.read);
                self.take(piece.reader);
                return Ok(());
            }
            Err(Failure::Storage(error)) => error,
            // Only a server that stops refuses the next piece of a range.
            Err(Failure::Refused(_) | Failure::NoMemory) => {
                Error::new(ErrorKind::Closed, "the server stops")
            }
        };
        self.state = State::Broken;
        Err(self.break_off(error, piece.reader.read_count()))
    }

    fn take(&mut self, reader: Box<RangeReader>) {
        self.has_yielded = false;
        self.memory.resize(RANGE_BYTES.max(reader.held_bytes()));
        self.state = State::Here(reader);
    }

    fn break_off(&mut self, error: Error, read_count: u64) -> Error {
        self.call.socket.cork(false);
        if self.until_close {
            self.call.socket.reset_on_close();
        }
        self.call.cx.meter.counters.ranges_aborted.add(1);
        let fields: [(&str, &dyn std::fmt::Display); 2] =
            [("error", &error), ("record_count", &read_count)];
        self.call.cx.log.event(Level::Error, "range_aborted", &fields);
        error
    }
}

impl BodyStream for RangeBody {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let _tag = tag::enter_at(Activity::Range, Stage::Respond);
        ready!(self.poll_piece(cx))?;
        let State::Here(reader) = &mut self.state else {
            return Poll::Ready(None);
        };
        let frame = reader.next_frame();
        self.is_finished = reader.has_ended() && reader.is_taken();
        self.call.socket.cork(!reader.is_taken());
        Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}

impl Drop for RangeBody {
    fn drop(&mut self) {
        self.call.socket.cork(false);
    }
}
