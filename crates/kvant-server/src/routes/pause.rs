//! `POST /v0/admin/pause?for=DURATION`: the engine's background work rests, and goes on by itself.
//! The response is sent when the pause begins.

use crate::conn::{Call, RequestStep};
use crate::http::{Exchange, Problem, query};
use crate::store::Capability;
use crate::work::Failure;
use http::StatusCode;
use kvant_base::duration;
use serde_json::json;
use std::time::Duration;

pub(super) fn start(call: &Call, mut exchange: Exchange) -> RequestStep {
    let paused = query::pause(exchange.uri.query()).and_then(|time| {
        pause(call, time)?;
        Ok(time)
    });
    let reply = &mut exchange.reply;
    RequestStep::ready(match paused {
        Ok(time) => reply.json(&json!({ "status": "paused", "for_us": duration::ns(time) / 1000 })),
        Err(problem) => problem.respond(reply),
    })
}

fn pause(call: &Call, time: Duration) -> Result<(), Problem> {
    let store = call.cx.storage.lifecycle.ready()?;
    if !store.has(Capability::Pause) {
        return Err(Problem::not_supported(store.name(), Capability::Pause.name()));
    }
    match store.pause(time) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Problem::new(
            StatusCode::CONFLICT,
            "pause-running",
            "Background work is paused",
            "pauses do not add up: ask again when the other has ended",
        )),
        Err(error) => Err(call.explain(&Failure::from(error))),
    }
}
