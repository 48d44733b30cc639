//! `POST /v0/admin/what-if?for=DURATION[&slow=STAGE:PERCENT,..]`: stages of the server's work take
//! longer by so much, each time that they are used. For experiments: see `docs/explain.md`, "What
//! if". The response is sent when it begins; it ends by itself.
//!
//! Without `slow` nothing is slowed down, but each stage is timed: what to compare with.
//!
//! Threads: the selector that took the request adds the end of the event.

use super::server_state::ServerState;
use crate::conn::RequestStep;
use crate::http::query::{self, WhatIfQuery};
use crate::http::{Exchange, Problem};
use http::StatusCode;
use kvant_base::dilation;
use kvant_base::events::{EventKind, Field};
use kvant_base::tag::Stage;
use kvant_base::{Events, duration};
use kvant_env::clock::system_ns;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) fn start(server: &Arc<ServerState>, exchange: Exchange) -> RequestStep {
    let mut reply = exchange.reply;
    let begun =
        query::what_if(exchange.uri.query()).and_then(|wanted| begin(&server.events, wanted));
    RequestStep::ready(match begun {
        Ok(document) => reply.json(&document),
        Err(problem) => problem.respond(&mut reply),
    })
}

fn begin(events: &Arc<Events>, wanted: WhatIfQuery) -> Result<Value, Problem> {
    let WhatIfQuery { time, added } = wanted;
    let for_ns = duration::ns(time);
    let start_ns = system_ns();
    let experiment = dilation::begin(added, for_ns, system_ns).ok_or_else(running)?;
    let slow = percents(&added);
    let fields = vec![("slow", Field::Text(Value::Object(slow.clone()).to_string().into()))];
    let span = events.begin(EventKind::WhatIf, start_ns, fields.clone());
    let events = Arc::clone(events);
    tokio::task::spawn_local(async move {
        tokio::time::sleep(time).await;
        dilation::end(experiment);
        events.end(EventKind::WhatIf, span, start_ns, start_ns + for_ns, fields);
    });
    Ok(json!({ "status": "slowed", "for_us": for_ns / 1000, "slow": slow }))
}

/// What is added to which stages, in per cent.
fn percents(added: &dilation::Added) -> Map<String, Value> {
    let slowed = Stage::ALL.into_iter().zip(added).filter(|(_, added)| **added > 0);
    let percent = |added: u32| f64::from(added) * 100.0 / f64::from(dilation::UNIT);
    slowed.map(|(stage, added)| (stage.name().to_owned(), json!(percent(*added)))).collect()
}

fn running() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "what-if-running",
        "Stages are slowed down",
        "one experiment at a time: ask again when the other has ended",
    )
}
