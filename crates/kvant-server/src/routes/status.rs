//! `GET /v0/status`: the server is alive, whatever the storage does.

use crate::conn::{Call, Step};
use crate::http::response::{JSON, status_document};
use crate::http::{Body, Exchange};
use http::StatusCode;

pub(super) fn start(call: &Call, mut exchange: Exchange) -> Step {
    let body = Body::full(status_document(call.cx.storage.store().is_some()));
    Step::ready(exchange.reply.respond(StatusCode::OK, Some(&JSON), body))
}
