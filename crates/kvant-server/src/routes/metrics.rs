//! `GET /metrics`: the Prometheus text format.

use super::document;
use crate::answer::Exchange;
use crate::report;
use crate::service::{Call, Step};
use http::header::HeaderValue;

static PROMETHEUS_TEXT: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn start(call: &Call, exchange: Exchange) -> Step {
    document::start(call, exchange, &PROMETHEUS_TEXT, |shared| {
        let mut text = String::with_capacity(16 << 10);
        report::write_metrics(shared, &mut text);
        if let Some(store) = shared.lifecycle.store() {
            store.write_metrics(&mut text);
        }
        Ok(text.into())
    })
}
