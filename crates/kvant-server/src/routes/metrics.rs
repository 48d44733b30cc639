//! `GET /metrics`: the Prometheus text format.

use super::server_state::ServerState;
use super::{document, report};
use crate::conn::Step;
use crate::http::Exchange;
use http::header::HeaderValue;
use std::sync::Arc;

static PROMETHEUS_TEXT: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn start(server: &Arc<ServerState>, exchange: Exchange) -> Step {
    document::start(server, exchange, &PROMETHEUS_TEXT, |server| {
        let mut text = String::with_capacity(16 << 10);
        report::write_metrics(server, &mut text);
        if let Some(store) = server.lifecycle.store() {
            store.write_metrics(&mut text);
        }
        Ok(text.into())
    })
}
