//! `GET /metrics`: the Prometheus text format.

use crate::answer::{Body, Exchange};
use crate::report;
use crate::service::{Call, Step};
use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;

static PROMETHEUS_TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn start(call: &Call, mut exchange: Exchange) -> Step {
    let shared = &call.selector.shared;
    let mut text = String::with_capacity(16 << 10);
    report::write_metrics(shared, &mut text);
    if let Some(store) = shared.lifecycle.store() {
        store.write_metrics(&mut text);
    }
    let body = Body::full(Bytes::from(text));
    Step::answer(
        exchange
            .reply
            .answer(StatusCode::OK, Some(&PROMETHEUS_TEXT), body),
    )
}
