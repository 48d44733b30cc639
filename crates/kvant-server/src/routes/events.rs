//! `GET /v0/events[?after=N]`: flushes, compactions, stalls, slow fsyncs and overload as
//! server-sent events.

use super::event_stream::EventBody;
use super::server_state::ServerState;
use crate::conn::{Call, RequestStep};
use crate::http::{Body, Exchange, problem, query};
use http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use http::{Method, StatusCode, Version};

static EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

pub(super) fn start(server: &ServerState, call: &Call, mut exchange: Exchange) -> RequestStep {
    let after = match query::after(exchange.uri.query()) {
        Ok(after) => after,
        Err(problem) => return RequestStep::ready(problem.respond(&mut exchange.reply)),
    };
    let reply = &mut exchange.reply;
    // A browser that reconnects repeats the target: then the header is the newer one.
    let after = last_event_id(reply.request_headers()).or(after);
    let body = match exchange.method {
        Method::HEAD => Body::empty(),
        _ => Body::stream(EventBody::new(server, call, after)),
    };
    let version = reply.version();
    let mut response = reply.respond(StatusCode::OK, Some(&EVENT_STREAM), body);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE.clone());
    if version == Version::HTTP_10 {
        problem::close(&mut response, version);
    }
    RequestStep::ready(response)
}

/// The number of the last event that the client has; `None` for anything but a number, which this
/// server did not send.
fn last_event_id(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}
