//! `GET /v0/entities?start=K[&end=K][&limit=N]`: records in key order.

use crate::admission::Class;
use crate::answer::{Body, Exchange, Reply, Response};
use crate::dispatch::{self, Failure, Piece, ReadingPiece};
use crate::memory::Held;
use crate::problem;
use crate::query;
use crate::range::{Format, RANGE_BYTES, RangeBody, RangeReader};
use crate::request_body::no_memory;
use crate::service::{Call, Step};
use crate::stores::Store;
use crate::timing::KeyStart;
use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode, Version};
use std::sync::Arc;

pub(super) fn start(call: &Call, exchange: Exchange) -> Step {
    let shared = &call.selector.shared;
    let query = query::range(exchange.query());
    let ready = query.and_then(|query| Ok((query, shared.lifecycle.ready()?)));
    let Exchange { method, mut reply, .. } = exchange;
    let (query, store) = match ready {
        Ok(ready) => ready,
        Err(problem) => return Step::answer(problem.answer(&mut reply)),
    };
    call.socket.note(|trace| trace.key = KeyStart::of(&query.start));
    let format = Format::accepted(reply.request_headers().get_all(ACCEPT));
    if method == Method::HEAD {
        return Step::answer(head(&mut reply, format, Body::empty()));
    }
    if let Some(refusal) = dispatch::admit(call, Class::Range) {
        let problem = dispatch::explain(&call.selector, &call.socket, &Failure::Refused(refusal));
        return Step::answer(problem.answer(&mut reply));
    }
    let range = Range { reader: Box::new(RangeReader::new(query, format)), format, reply };
    match shared.memory.try_hold(RANGE_BYTES) {
        Some(held) => range.open(call, store, held),
        None => Step::slow(range.open_later(call.clone(), Arc::clone(store))),
    }
}

/// A range of which nothing has been read.
struct Range {
    reader: Box<RangeReader>,
    format: Format,
    reply: Reply,
}

impl Range {
    async fn open_later(mut self, call: Call, store: Arc<dyn Store>) -> Response {
        let shared = &call.selector.shared;
        let Some(held) = shared.memory.hold(RANGE_BYTES, shared.config.queue_wait_max).await else {
            return no_memory(&call.selector).answer(&mut self.reply);
        };
        let (piece, answer) = match self.read(&call, &store, held) {
            (ReadingPiece::Done(piece), answer) => (piece, answer),
            (ReadingPiece::Later(later), answer) => {
                (dispatch::piece(&call.selector, &*store, later.await), answer)
            }
        };
        answer.finish(&call, store, piece)
    }

    fn open(self, call: &Call, store: &Arc<dyn Store>, held: Held) -> Step {
        let store = Arc::clone(store);
        match self.read(call, &store, held) {
            (ReadingPiece::Done(piece), answer) => Step::answer(answer.finish(call, store, piece)),
            (ReadingPiece::Later(later), answer) => {
                let call = call.clone();
                Step::slow(async move {
                    let piece = dispatch::piece(&call.selector, &*store, later.await);
                    answer.finish(&call, store, piece)
                })
            }
        }
    }

    /// Begins to read the first piece.
    fn read(self, call: &Call, store: &Arc<dyn Store>, held: Held) -> (ReadingPiece, RangeAnswer) {
        let reading = dispatch::read_piece(&call.selector, &**store, self.reader);
        let answer = RangeAnswer { format: self.format, reply: self.reply, held };
        (reading, answer)
    }
}

/// What is at hand while the first piece is being read.
struct RangeAnswer {
    format: Format,
    reply: Reply,
    held: Held,
}

impl RangeAnswer {
    fn finish(mut self, call: &Call, store: Arc<dyn Store>, piece: Piece) -> Response {
        call.socket.note(|trace| trace.storage(&piece.work));
        match piece.result {
            Ok(()) => {
                let until_close = self.reply.version() == Version::HTTP_10;
                let body = RangeBody::new(piece.reader, store, self.held, call, until_close);
                head(&mut self.reply, self.format, Body::range(body))
            }
            Err(failure) => {
                dispatch::explain(&call.selector, &call.socket, &failure).answer(&mut self.reply)
            }
        }
    }
}

fn head(reply: &mut Reply, format: Format, body: Body) -> Response {
    let media_type = HeaderValue::from_static(format.media_type());
    let version = reply.version();
    let mut response = reply.answer(StatusCode::OK, Some(&media_type), body);
    if version == Version::HTTP_10 {
        problem::close(&mut response, version);
    }
    response
}
