//! `GET /health`: whether this server can do its work, for whoever routes traffic or restarts it.

use crate::answer::Exchange;
use crate::problem::Problem;
use crate::service::{Call, Step};
use http::StatusCode;
use kvant_engine::WriteHealth;
use serde_json::json;

pub(super) fn start(call: &Call, mut exchange: Exchange) -> Step {
    let reply = &mut exchange.reply;
    let health = call.selector.shared.lifecycle.ready().map(|store| store.write_health());
    let problem = match health {
        Ok(WriteHealth::Good) => {
            return Step::answer(reply.json(&json!({ "status": "ready", "writes": "ok" })));
        }
        // It does its work for readers and for deletes: a restart or another target for these would
        // be worse.
        Ok(WriteHealth::NoSpace) => {
            return Step::answer(reply.json(&json!({
                "status": "ready",
                "writes": "no-space",
                "detail": "the disk is full: puts are answered 507 until space has returned; reads and deletes go on",
            })));
        }
        Ok(WriteHealth::Failing(cause)) => Problem::writes_failing(&cause)
            .with("writes", "failing")
            .with("cause", cause.to_string()),
        Ok(WriteHealth::Fenced(cause)) => Problem::fenced(&cause)
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
            .with("writes", "fenced")
            .with("cause", cause.to_string()),
        Err(problem) => problem,
    };
    Step::answer(problem.answer(reply))
}
