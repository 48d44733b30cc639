//! `GET /v0/stats`: everything the server and the engine know about themselves, and the times of requests, as JSON.

use crate::answer::Exchange;
use crate::problem::Problem;
use crate::report;
use crate::service::{Call, Step};
use crate::timing;
use http::StatusCode;
use serde_json::{Value, json};

pub(super) fn start(call: &Call, mut exchange: Exchange) -> Step {
    let shared = &call.selector.shared;
    let engine = shared
        .lifecycle
        .store()
        .map_or(Ok(Value::Null), |store| store.stats_json());
    let response = match engine {
        Ok(engine) => exchange.reply.json(&json!({
            "server": report::json(shared),
            "latency": timing::latency_json(&shared.timings),
            "engine": engine,
        })),
        Err(error) => {
            let detail = format!("the statistics cannot be written as JSON: {error}");
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal error",
                detail,
            )
            .answer(&mut exchange.reply)
        }
    };
    Step::answer(response)
}
