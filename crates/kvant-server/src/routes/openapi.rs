//! `GET /openapi.json`: the interface for machines. Written by hand; a test compares it with the
//! routes.

use crate::conn::Step;
use crate::http::response::JSON;
use crate::http::{Body, Exchange};
use http::StatusCode;

pub(super) static DOCUMENT: &str = include_str!("../openapi.json");

pub(super) fn start(mut exchange: Exchange) -> Step {
    let body = Body::full(DOCUMENT);
    Step::ready(exchange.reply.respond(StatusCode::OK, Some(&JSON), body))
}
