//! `GET /v0/events[?after=N]`: flushes, compactions, stalls, slow fsyncs and overload as
//! server-sent events.

use crate::answer::{Body, Exchange};
use crate::event_stream::EventBody;
use crate::problem;
use crate::query;
use crate::service::{Call, Step};
use http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use http::{Method, StatusCode, Version};

static EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

pub(super) fn start(call: &Call, mut exchange: Exchange) -> Step {
    let after = match query::after(exchange.query()) {
        Ok(after) => after,
        Err(problem) => return Step::answer(problem.answer(&mut exchange.reply)),
    };
    let reply = &mut exchange.reply;
    // A browser that reconnects asks for the same target again: then the header is the newer of
    // both.
    let after = last_event_id(reply.request_headers()).or(after);
    let body = match exchange.method {
        Method::HEAD => Body::empty(),
        _ => Body::events(EventBody::new(call, after)),
    };
    let version = reply.version();
    let mut response = reply.answer(StatusCode::OK, Some(&EVENT_STREAM), body);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE.clone());
    if version == Version::HTTP_10 {
        problem::close(&mut response, version);
    }
    Step::answer(response)
}

/// The number of the last event that the client has. What is no number is not from here, and says
/// nothing.
fn last_event_id(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}
