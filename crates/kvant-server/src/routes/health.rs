//! `GET /health`: whether this server can do its work, for load balancers and supervisors.

use crate::conn::{Call, RequestStep};
use crate::http::{Exchange, Problem};
use crate::store::{Backend, Capability, WriteHealth};
use http::StatusCode;
use serde_json::{Value, json};

pub(super) fn start(call: &Call, mut exchange: Exchange) -> RequestStep {
    let reply = &mut exchange.reply;
    let health = call.cx.storage.lifecycle.ready().and_then(document);
    RequestStep::ready(match health {
        Ok(document) => reply.json(&document),
        Err(problem) => problem.respond(reply),
    })
}

fn document(store: &Backend) -> Result<Value, Problem> {
    let mut document = match store.write_health() {
        WriteHealth::Good => json!({ "status": "ready", "writes": "ok" }),
        // Readers and deletes are served: a restart or another target would be worse for them.
        WriteHealth::NoSpace => json!({
            "status": "ready",
            "writes": "no-space",
            "detail": "the disk is full: puts are answered 507 until space has returned; reads and deletes go on",
        }),
        WriteHealth::Failing(cause) => {
            return Err(Problem::writes_failing(&cause)
                .with("writes", "failing")
                .with("cause", cause.to_string()));
        }
        WriteHealth::Fenced(cause) => {
            return Err(Problem::fenced(&cause)
                .with_status(StatusCode::SERVICE_UNAVAILABLE)
                .with("writes", "fenced")
                .with("cause", cause.to_string()));
        }
        WriteHealth::Away(cause) => return Err(Problem::away(&cause)),
    };
    document["engine"] = store.name().into();
    if !store.has(Capability::Persistence) {
        document["persistence"] = "none: the data is lost when the process ends".into();
    }
    if let Backend::Remote(store) = store {
        document["cluster"] = store.health_json();
    }
    Ok(document)
}
