//! `GET /health`: whether this server can do its work, for whoever routes traffic or restarts it.

use crate::answer::Exchange;
use crate::problem::Problem;
use crate::service::{Call, Step};
use http::StatusCode;
use serde_json::json;

pub(super) fn start(call: &Call, mut exchange: Exchange) -> Step {
    let reply = &mut exchange.reply;
    let response = match call.selector.shared.lifecycle.ready() {
        Err(problem) => problem.answer(reply),
        Ok(store) => match store.fenced() {
            Some(cause) => Problem::fenced(&cause)
                .with_status(StatusCode::SERVICE_UNAVAILABLE)
                .answer(reply),
            None => reply.json(&json!({ "status": "ready" })),
        },
    };
    Step::answer(response)
}
