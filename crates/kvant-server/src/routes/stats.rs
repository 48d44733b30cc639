//! `GET /v0/stats`: everything the server and the engine know about themselves, and the times of
//! requests, as JSON.

use super::server_state::ServerState;
use super::{document, report};
use crate::conn::Step;
use crate::http::Exchange;
use crate::http::response::JSON;
use crate::timing;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn start(server: &Arc<ServerState>, exchange: Exchange) -> Step {
    document::start(server, exchange, &JSON, |server| {
        let engine =
            server.lifecycle.store().map_or(Ok(Value::Null), |store| store.stats_json())?;
        serde_json::to_vec(&json!({
            "server": report::json(server),
            "latency": timing::latency_json(&server.timings),
            "engine": engine,
        }))
    })
}
