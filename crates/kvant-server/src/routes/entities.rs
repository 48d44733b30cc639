//! `GET /v0/entities?start=K[&end=K][&limit=N]`: records in key order.

use super::range_body::{RANGE_BYTES, RangeBody};
use crate::admission::Class;
use crate::conn::{Call, RequestStep};
use crate::http::record_format::RecordFormat;
use crate::http::{Body, Exchange, Problem, Reply, Response, problem, query};
use crate::memory::Held;
use crate::store::{Backend, Capability};
use crate::timing::{KeyStart, StorageWork};
use crate::work::{Failure, RangeReader};
use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode, Version};
use std::rc::Rc;

pub(super) fn start(call: &Call, mut exchange: Exchange) -> RequestStep {
    let range = match admit(call, &exchange) {
        Ok(range) => range,
        Err(problem) => return RequestStep::ready(problem.respond(&mut exchange.reply)),
    };
    let mut reply = exchange.reply;
    if exchange.method == Method::HEAD {
        return RequestStep::ready(respond(&mut reply, range.format, Body::empty()));
    }
    if let Err(problem) = call.admit(Class::Range) {
        return RequestStep::ready(problem.respond(&mut reply));
    }
    let call = call.clone();
    RequestStep::later(async move {
        let (memory, meter) = (&call.cx.memory, &call.cx.meter);
        let begun_ns = meter.now_ns();
        // One that fetches more than all requests may hold is alone.
        let bytes = RANGE_BYTES.max(range.reader.held_bytes()).min(memory.share_bytes());
        match memory.hold(bytes, call.cx.config.queue_wait_max).await {
            Some(held) => open(&call, reply, range, held, begun_ns).await,
            None => {
                let work = StorageWork::never_begun(begun_ns, meter.now_ns());
                call.socket.update_trace(|trace| trace.set_storage(&work));
                call.explain(&Failure::NoMemory).respond(&mut reply)
            }
        }
    })
}

/// A range of which nothing was read.
struct Range {
    reader: Box<RangeReader>,
    format: RecordFormat,
    store: Backend,
}

fn admit(call: &Call, exchange: &Exchange) -> Result<Range, Problem> {
    let query = query::range(exchange.uri.query())?;
    let store = call.cx.storage.lifecycle.ready()?;
    call.socket.update_trace(|trace| trace.key = KeyStart::of(&query.start));
    if !store.has(Capability::Range) {
        return Err(Problem::not_supported(store.name(), "order of keys"));
    }
    let format = RecordFormat::accepted(exchange.reply.request_headers().get_all(ACCEPT));
    let mut reader = Box::new(RangeReader::new(query, format));
    if let Backend::Remote(store) = store {
        // Requests nothing yet, and says how much is likely to come.
        reader.open(&**store).map_err(|error| call.explain(&error.into()))?;
    }
    Ok(Range { reader, format, store: store.clone() })
}

/// Reads the first piece, so that an error before it has a status of its own.
async fn open(call: &Call, mut reply: Reply, range: Range, held: Held, begun_ns: u64) -> Response {
    let Range { reader, format, store } = range;
    let piece = Rc::clone(&call.cx.storage).read_piece(store.clone(), reader).await;
    // The wait for memory is a part of the wait for storage.
    let work = StorageWork { queued_ns: begun_ns, ..piece.work };
    call.socket.update_trace(|trace| trace.set_storage(&work));
    match piece.result {
        Ok(()) => {
            let until_close = reply.version() == Version::HTTP_10;
            let body = RangeBody::new(piece.reader, store, held, call, until_close);
            respond(&mut reply, format, Body::stream(body))
        }
        Err(failure) => call.explain(&failure).respond(&mut reply),
    }
}

fn respond(reply: &mut Reply, format: RecordFormat, body: Body) -> Response {
    let media_type = HeaderValue::from_static(format.media_type());
    let version = reply.version();
    let mut response = reply.respond(StatusCode::OK, Some(&media_type), body);
    if version == Version::HTTP_10 {
        problem::close(&mut response, version);
    }
    response
}
