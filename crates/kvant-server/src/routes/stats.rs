//! `GET /v0/stats`: everything the server and the engine know about themselves, and the times of
//! requests, as JSON.

use super::document;
use crate::answer::{Exchange, JSON};
use crate::report;
use crate::service::{Call, Step};
use crate::timing;
use serde_json::{Value, json};

pub(super) fn start(call: &Call, exchange: Exchange) -> Step {
    document::start(call, exchange, &JSON, |shared| {
        let engine =
            shared.lifecycle.store().map_or(Ok(Value::Null), |store| store.stats_json())?;
        serde_json::to_vec(&json!({
            "server": report::json(shared),
            "latency": timing::latency_json(&shared.timings),
            "engine": engine,
        }))
    })
}
