//! `POST /v0/admin/{flush,compact,checkpoint}`: an operator's work. It may take long, so it runs on
//! a thread of its own while the selector goes on; the response is sent when it is done.

use crate::conn::request_body::{self, BodyMax};
use crate::conn::{Call, RequestStep};
use crate::http::{Exchange, Problem, Reply, Response, Route, query};
use crate::store::{Backend, Capability};
use crate::work::Failure;
use hyper::body::Incoming;
use kvant_base::tag::{self, Activity};
use kvant_base::{Error, ErrorKind};
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};

const BODY_MAX: BodyMax = BodyMax { bytes: 64 << 10, problem: Problem::body_too_long };

/// Longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointRequest {
    dir: String,
}

pub(super) fn start(route: Route, call: &Call, exchange: Exchange) -> RequestStep {
    let (dir, store) = match admit(route, call, &exchange) {
        Ok(admitted) => admitted,
        Err(problem) => {
            return request_body::refuse(&call.cx.config, exchange.body, exchange.reply, problem);
        }
    };
    let call = call.clone();
    let Exchange { body, mut reply, .. } = exchange;
    RequestStep::later(async move {
        match route {
            Route::Flush => run(&call, &mut reply, move || store.flush()).await,
            Route::Compact => run(&call, &mut reply, move || store.compact()).await,
            _ => match choose_dir(&call, &mut reply, dir, body).await {
                Ok(dir) => run(&call, &mut reply, move || store.checkpoint(&dir)).await,
                Err(problem) => problem.respond(&mut reply),
            },
        }
    })
}

fn admit(
    route: Route,
    call: &Call,
    exchange: &Exchange,
) -> Result<(Option<String>, Backend), Problem> {
    let dir = query::text(exchange.uri.query(), "dir")?;
    let store = call.cx.storage.lifecycle.ready()?;
    let needed = match route {
        Route::Checkpoint => Capability::Checkpoint,
        _ => Capability::Compaction,
    };
    if !store.has(needed) {
        return Err(Problem::not_supported(store.name(), needed.name()));
    }
    Ok((dir, store.clone()))
}

async fn choose_dir(
    call: &Call,
    reply: &mut Reply,
    dir_of_query: Option<String>,
    body: Option<Incoming>,
) -> Result<PathBuf, Problem> {
    let mut dir_of_body = None;
    if let Some(body) = body {
        let body = request_body::read(call, reply, body, BODY_MAX).await?;
        if !body.bytes.is_empty() {
            let request: CheckpointRequest =
                serde_json::from_slice(&body.bytes).map_err(|error| {
                    let detail = format!("the body is not {{\"dir\": \"NAME\"}}: {error}");
                    Problem::bad_request("bad-body", detail)
                })?;
            dir_of_body = Some(request.dir);
        }
    }
    checkpoint_dir(&call.cx.config.checkpoints, dir_of_query, dir_of_body)
}

/// The requested directory: one name, so that it lies in the directory of checkpoints.
fn checkpoint_dir(
    checkpoints: &Path,
    query: Option<String>,
    body: Option<String>,
) -> Result<PathBuf, Problem> {
    let ((Some(dir), None) | (None, Some(dir))) = (query, body) else {
        return Err(Problem::bad_request(
            "bad-query",
            "give the directory once: as ?dir= or as {\"dir\": \"NAME\"}",
        ));
    };
    let is_name = !matches!(dir.as_str(), "" | "." | "..") && !dir.contains(['/', '\0']);
    if !is_name || dir.len() > NAME_BYTES_MAX {
        return Err(Problem::bad_request(
            "bad-query",
            format!(
                "the directory of a checkpoint is one name of at most {NAME_BYTES_MAX} bytes, without `/`: it is made in {}, which \
                 --checkpoints changes",
                checkpoints.display()
            ),
        ));
    }
    Ok(checkpoints.join(dir))
}

async fn run(
    call: &Call,
    reply: &mut Reply,
    work: impl FnOnce() -> kvant_base::Result<()> + Send + 'static,
) -> Response {
    let started_ns = call.cx.meter.now_ns();
    let tagged = || {
        let _tag = tag::enter(Activity::Operator);
        work()
    };
    // Panics abort the process in release builds; in others the panic's own message explains it.
    let cancelled = |_| Err(Error::new(ErrorKind::Io, "the operation was cancelled"));
    match tokio::task::spawn_blocking(tagged).await.unwrap_or_else(cancelled) {
        Ok(()) => {
            let took_us = (call.cx.meter.now_ns() - started_ns) / 1000;
            reply.json(&json!({ "status": "done", "took_us": took_us }))
        }
        Err(error) => call.explain(&Failure::from(error)).respond(reply),
    }
}
