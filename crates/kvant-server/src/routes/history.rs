//! `GET /v0/history[?last=DURATION][&from_ns=N][&to_ns=N]`: the last minutes, for machines.
//!
//! Invariants:
//! 1. At most one piece is held, whatever the length of the response: the next is encoded when the
//!    kernel has taken the last, on a thread of its own.
//! 2. A reader that falls behind misses the oldest windows, instead of keeping them.
//!
//! Threads: the response belongs to its selector.

mod document;

use super::server_state::ServerState;
use crate::conn::{Call, RequestStep};
use crate::history::History;
use crate::http::query::{self, HistorySpan};
use crate::http::response::{BodyStream, JSON};
use crate::http::{Body, Exchange, Problem, problem};
use crate::memory::Held;
use crate::work::Failure;
use bytes::Bytes;
use document::{Document, PIECE_BYTES};
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Method, StatusCode, Version};
use hyper::body::Frame;
use kvant_base::{Error, ErrorKind};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::{JoinHandle, spawn_blocking};

/// What a response counts for in the memory budget: a piece, and as much on its way to the kernel.
const RESPONSE_BYTES: u64 = 2 * PIECE_BYTES as u64;

static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

pub(super) fn start(server: &Arc<ServerState>, call: &Call, mut exchange: Exchange) -> RequestStep {
    let (span_ns, history) = match admit(server, &exchange) {
        Ok(admitted) => admitted,
        Err(problem) => return RequestStep::ready(problem.respond(&mut exchange.reply)),
    };
    let (server, call) = (Arc::clone(server), call.clone());
    RequestStep::later(async move {
        let reply = &mut exchange.reply;
        let wait_max = call.cx.config.queue_wait_max;
        let Some(held) = server.memory.hold(RESPONSE_BYTES, wait_max).await else {
            return call.explain(&Failure::NoMemory).respond(reply);
        };
        let version = reply.version();
        let body = match exchange.method {
            Method::HEAD => Body::empty(),
            _ => Body::stream(HistoryBody {
                state: State::Here(Box::new(Document::new(&server, history, span_ns))),
                has_yielded: true,
                call: call.clone(),
                _memory: held,
            }),
        };
        let mut response = reply.respond(StatusCode::OK, Some(&JSON), body);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE.clone());
        if version == Version::HTTP_10 {
            problem::close(&mut response, version);
        }
        response
    })
}

/// The requested time, and the history.
fn admit(server: &ServerState, exchange: &Exchange) -> Result<(Range<u64>, Arc<History>), Problem> {
    let span = query::history(exchange.uri.query())?;
    let Some(history) = &server.history else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "no-history",
            "No history",
            "nothing is recorded: start the server with --history and the time to be kept",
        ));
    };
    let now_ns = server.env.clock.monotonic_ns();
    let span_ns = match span {
        HistorySpan::Last(last_ns) => now_ns.saturating_sub(last_ns)..now_ns,
        HistorySpan::Between { from_ns, to_ns } => from_ns..to_ns.unwrap_or(now_ns),
    };
    Ok((span_ns, Arc::clone(history)))
}

struct HistoryBody {
    state: State,
    /// Other connections have had their turn since the last piece.
    has_yielded: bool,
    call: Call,
    _memory: Held,
}

enum State {
    Here(Box<Document>),
    /// The next piece is being encoded.
    Encoding(JoinHandle<(Box<Document>, Vec<u8>)>),
    Ended,
}

impl BodyStream for HistoryBody {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<kvant_base::Result<Frame<Bytes>>>> {
        loop {
            match &mut self.state {
                State::Ended => return Poll::Ready(None),
                // Hyper polls again when the kernel takes more.
                State::Here(_) if self.call.socket.is_blocked() => return Poll::Pending,
                State::Here(_) if !std::mem::replace(&mut self.has_yielded, true) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                State::Here(_) => {
                    if let State::Here(mut document) =
                        std::mem::replace(&mut self.state, State::Ended)
                    {
                        self.state = State::Encoding(spawn_blocking(move || {
                            let piece = document.next_piece();
                            (document, piece)
                        }));
                    }
                }
                State::Encoding(encoding) => {
                    let encoded = ready!(Pin::new(encoding).poll(cx));
                    self.state = State::Ended;
                    let (document, piece) =
                        encoded.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
                    if !document.has_ended() {
                        self.state = State::Here(document);
                    }
                    self.has_yielded = false;
                    return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
                }
            }
        }
    }

    fn is_finished(&self) -> bool {
        matches!(self.state, State::Ended)
    }
}
