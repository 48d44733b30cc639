//! `GET /v0/status`: alive, whatever the storage is doing.

use crate::answer::{Body, Exchange, JSON};
use crate::service::{Call, Step};
use bytes::Bytes;
use http::StatusCode;

/// Says that the store is open.
pub(crate) const READY: &[u8] = br#"{"status":"ready"}"#;

pub(super) fn start(call: &Call, mut exchange: Exchange) -> Step {
    let body: &[u8] = match call.selector.shared.lifecycle.store() {
        Some(_) => READY,
        None => br#"{"status":"recovering"}"#,
    };
    let body = Body::full(Bytes::from_static(body));
    Step::answer(exchange.reply.answer(StatusCode::OK, Some(&JSON), body))
}
