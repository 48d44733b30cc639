//! Which failed attempts are retried, and where.
//!
//! The driver's default does not retry a request whose coordinator received too few responses in
//! time, on the grounds that the other nodes are too slow for any coordinator. After a network
//! partition that is wrong for a while: the nodes' connections with each other recover at different
//! times, and one coordinator gives up after its limit of seconds where another needs milliseconds.
//! So such a request goes to one other coordinator, once; with second reads, each of both attempts
//! may. It does not help where all nodes have to respond. Under overload the retries count against
//! the limits of the nodes as all requests do.

use scylla::errors::{DbError, RequestAttemptError};
use scylla::policies::retry::{
    DefaultRetryPolicy, RequestInfo, RetryDecision, RetryPolicy, RetrySession,
};

/// The driver's default, and one other coordinator for requests with too few responses.
#[derive(Debug)]
pub(crate) struct RetryOtherCoordinator;

struct Retries {
    default: Box<dyn RetrySession>,
    has_changed_coordinator: bool,
}

impl RetryPolicy for RetryOtherCoordinator {
    fn new_session(&self) -> Box<dyn RetrySession> {
        Box::new(Retries::new())
    }
}

impl Retries {
    fn new() -> Retries {
        let default = DefaultRetryPolicy::new().new_session();
        Retries { default, has_changed_coordinator: false }
    }

    /// Whether to retry at another coordinator: at most once.
    fn changes_coordinator(&mut self, is_idempotent: bool, error: &RequestAttemptError) -> bool {
        let changes =
            is_idempotent && !self.has_changed_coordinator && has_too_few_responses(error);
        self.has_changed_coordinator |= changes;
        changes
    }
}

impl RetrySession for Retries {
    fn decide_should_retry(&mut self, request: RequestInfo<'_>) -> RetryDecision {
        if self.changes_coordinator(request.is_idempotent, request.error) {
            return RetryDecision::RetryNextTarget(None);
        }
        self.default.decide_should_retry(request)
    }

    fn reset(&mut self) {
        *self = Retries::new();
    }
}

/// Whether the coordinator waited in vain for other nodes.
pub(crate) fn has_too_few_responses(error: &RequestAttemptError) -> bool {
    match error {
        RequestAttemptError::DbError(
            DbError::ReadTimeout { required, received, .. }
            | DbError::WriteTimeout { required, received, .. },
            _,
        ) => received < required,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
