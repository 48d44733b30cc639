//! Documents about the server itself. Writing one takes milliseconds, so it is written on a thread
//! of its own, and the selector's other connections go on.

use super::server_state::ServerState;
use crate::conn::Step;
use crate::http::{Body, Exchange, Problem};
use http::StatusCode;
use http::header::HeaderValue;
use std::sync::Arc;

/// Responds with what `write` returns.
pub(super) fn start(
    server: &Arc<ServerState>,
    mut exchange: Exchange,
    content_type: &'static HeaderValue,
    write: impl FnOnce(&ServerState) -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Step {
    let server = Arc::clone(server);
    Step::later(async move {
        let reply = &mut exchange.reply;
        let failure = match tokio::task::spawn_blocking(move || write(&server)).await {
            Ok(Ok(bytes)) => {
                return reply.respond(StatusCode::OK, Some(content_type), Body::full(bytes));
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let detail = format!("the document cannot be written: {failure}");
        Problem::internal("internal", "Internal error", detail).respond(reply)
    })
}
