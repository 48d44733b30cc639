//! Documents about the server itself, which take milliseconds to write: they are written on a
//! thread of their own, so that the selector's other connections go on.

use crate::answer::{Body, Exchange};
use crate::problem::Problem;
use crate::selector::Shared;
use crate::service::{Call, Step};
use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;
use std::sync::Arc;

/// Answers with what `write` writes.
pub(super) fn start(
    call: &Call,
    mut exchange: Exchange,
    content_type: &'static HeaderValue,
    write: impl FnOnce(&Shared) -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Step {
    let shared = Arc::clone(&call.selector.shared);
    Step::slow(async move {
        let reply = &mut exchange.reply;
        let failure = match tokio::task::spawn_blocking(move || write(&shared)).await {
            Ok(Ok(bytes)) => {
                return reply.answer(
                    StatusCode::OK,
                    Some(content_type),
                    Body::full(Bytes::from(bytes)),
                );
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Internal error",
            format!("the document cannot be written: {failure}"),
        )
        .answer(reply)
    })
}
