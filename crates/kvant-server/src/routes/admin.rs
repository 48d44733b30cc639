//! `POST /v0/admin/{flush,compact,checkpoint}`: work that an operator asks for. It may take long,
//! so it runs on a thread of its own while the selector goes on; the answer comes when it is done.

use super::Route;
use super::entity::failed;
use crate::answer::{Exchange, Reply, Response};
use crate::config::ServerConfig;
use crate::problem::Problem;
use crate::query;
use crate::request_body::{self, Unread, discard, read_value};
use crate::selector::Selector;
use crate::service::{Call, Step};
use crate::stores::Store;
use hyper::body::Incoming;
use kvant_base::Result;
use kvant_base::tag::{self, Activity};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Longest JSON body of a checkpoint request.
const BODY_BYTES_MAX: u64 = 64 << 10;

/// Longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;

/// The JSON body of a checkpoint request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointRequest {
    dir: String,
}

pub(super) fn start(route: Route, call: &Call, exchange: Exchange) -> Step {
    let selector = Rc::clone(&call.selector);
    let dir = query::text(exchange.query(), "dir");
    let ready = dir.and_then(|dir| Ok((dir, Arc::clone(selector.shared.lifecycle.ready()?))));
    let Exchange { body, mut reply, .. } = exchange;
    let (dir, store) = match ready {
        Ok(ready) => ready,
        Err(problem) => return request_body::refuse(&selector.shared.config, body, reply, problem),
    };
    match route {
        Route::Checkpoint => Step::slow(checkpoint(selector, store, reply, body, dir)),
        _ => Step::slow(async move {
            let work = match route {
                Route::Flush => Store::flush,
                _ => Store::compact,
            };
            run(&selector, &mut reply, move || work(&*store)).await
        }),
    }
}

async fn checkpoint(
    selector: Rc<Selector>,
    store: Arc<dyn Store>,
    mut reply: Reply,
    body: Option<Incoming>,
    dir: Option<String>,
) -> Response {
    let dir_of_body = match body {
        Some(body) => read_dir(&selector, &mut reply, body).await,
        None => Ok(None),
    };
    match dir_of_body.and_then(|dir_of_body| choose_dir(&selector.shared.config, dir, dir_of_body))
    {
        Ok(dir) => run(&selector, &mut reply, move || store.checkpoint(&dir)).await,
        Err(problem) => problem.answer(&mut reply),
    }
}

async fn read_dir(
    selector: &Selector,
    reply: &mut Reply,
    mut body: Incoming,
) -> std::result::Result<Option<String>, Problem> {
    match read_value(selector, reply, &mut body, None, BODY_BYTES_MAX).await {
        Ok(value) if value.bytes.is_empty() => Ok(None),
        Ok(value) => serde_json::from_slice(&value.bytes)
            .map(|request: CheckpointRequest| Some(request.dir))
            .map_err(|error| {
                Problem::bad_request(
                    "bad-body",
                    format!("the body is not {{\"dir\": \"NAME\"}}: {error}"),
                )
            }),
        Err(Unread { problem, taken_bytes }) => {
            let can_go_on = !problem.is_closing()
                && discard(&selector.shared.config, body, reply, taken_bytes).await;
            Err(if can_go_on { problem } else { problem.closing() })
        }
    }
}

/// The directory that is asked for: one name, so that it can be nowhere but in the directory of
/// checkpoints.
fn choose_dir(
    config: &ServerConfig,
    query: Option<String>,
    body: Option<String>,
) -> std::result::Result<PathBuf, Problem> {
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
                config.checkpoints.display()
            ),
        ));
    }
    Ok(config.checkpoints.join(dir))
}

async fn run(
    selector: &Selector,
    reply: &mut Reply,
    work: impl FnOnce() -> Result<()> + Send + 'static,
) -> Response {
    let clock = &selector.shared.env.clock;
    let started_ns = clock.monotonic_ns();
    let tagged = || {
        let _tag = tag::enter(Activity::Operator);
        work()
    };
    let result = match tokio::task::spawn_blocking(tagged).await {
        Ok(result) => result,
        // Panics abort the process in release builds; in others the panic's own message is the one
        // to read.
        Err(_) => {
            Err(kvant_base::Error::new(kvant_base::ErrorKind::Io, "the operation was cancelled"))
        }
    };
    match result {
        Ok(()) => {
            let took_us = (clock.monotonic_ns() - started_ns) / 1000;
            reply.json(&json!({ "status": "done", "took_us": took_us }))
        }
        Err(error) => failed(selector, &error).answer(reply),
    }
}
