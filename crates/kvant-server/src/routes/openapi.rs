//! `GET /openapi.json`: this interface for machines. Kept by hand; a test compares it with the
//! table of routes.

use crate::answer::{Body, Exchange, JSON};
use crate::service::Step;
use bytes::Bytes;
use http::StatusCode;

pub(super) static DOCUMENT: &str = include_str!("../openapi.json");

pub(super) fn start(mut exchange: Exchange) -> Step {
    let body = Body::full(Bytes::from_static(DOCUMENT.as_bytes()));
    Step::answer(exchange.reply.answer(StatusCode::OK, Some(&JSON), body))
}
