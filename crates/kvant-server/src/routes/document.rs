//! Documents about the server itself: `GET /v0/status`, `/metrics`, `/v0/stats`, `/openapi.json`.

use super::report;
use super::server_state::ServerState;
use crate::conn::{Call, RequestStep};
use crate::http::response::{JSON, status_document};
use crate::http::{Body, Exchange, Problem};
use crate::timing;
use http::StatusCode;
use http::header::HeaderValue;
use serde_json::{Value, json};
use std::sync::Arc;

static PROMETHEUS_TEXT: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The interface for machines. Written by hand; a test compares it with the routes.
pub(super) static OPENAPI: &str = include_str!("../openapi.json");

/// `GET /v0/status`: the server is alive, whatever the storage does.
pub(super) fn status(call: &Call, exchange: Exchange) -> RequestStep {
    fixed(exchange, Body::full(status_document(call.cx.storage.lifecycle.store().is_some())))
}

pub(super) fn openapi(exchange: Exchange) -> RequestStep {
    fixed(exchange, Body::full(OPENAPI))
}

fn fixed(mut exchange: Exchange, body: Body) -> RequestStep {
    RequestStep::ready(exchange.reply.respond(StatusCode::OK, Some(&JSON), body))
}

/// `GET /metrics`: the Prometheus text format.
pub(super) fn metrics(server: &Arc<ServerState>, exchange: Exchange) -> RequestStep {
    start(server, exchange, &PROMETHEUS_TEXT, |server| {
        let mut text = String::with_capacity(16 << 10);
        report::write_metrics(server, &mut text);
        if let Some(store) = server.lifecycle.store() {
            store.write_metrics(&mut text);
        }
        Ok(text.into())
    })
}

/// `GET /v0/stats`: the statistics of the server and the engine, and the times of requests.
pub(super) fn stats(server: &Arc<ServerState>, exchange: Exchange) -> RequestStep {
    start(server, exchange, &JSON, |server| {
        let store = server.lifecycle.store();
        serde_json::to_vec(&json!({
            "server": report::json(server),
            "latency": timing::latency_json(&server.timings),
            "engine": store.map_or(Ok(Value::Null), |store| store.stats_json())?,
        }))
    })
}

/// Responds with the document that `write` returns. Writing one takes milliseconds, so it runs on a
/// thread of its own, and the selector's other connections go on.
pub(super) fn start(
    server: &Arc<ServerState>,
    mut exchange: Exchange,
    content_type: &'static HeaderValue,
    write: impl FnOnce(&ServerState) -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> RequestStep {
    let server = Arc::clone(server);
    RequestStep::later(async move {
        let reply = &mut exchange.reply;
        let failure = match tokio::task::spawn_blocking(move || write(&server)).await {
            Ok(Ok(bytes)) => {
                return reply.respond(StatusCode::OK, Some(content_type), Body::full(bytes));
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let detail = format!("the document cannot be written: {failure}");
        Problem::internal("internal", "Internal error", detail).respond(reply)
    })
}
