//! Which failed attempts are made again at another node.
//!
//! The driver's rule does not repeat a request whose coordinator got too few answers in time: the
//! other nodes would be too slow for any coordinator. That is wrong for a while after a network was
//! cut: the nodes' connections with each other recover at different times, and one coordinator gives
//! up after its own limit of seconds where another answers in milliseconds. So such a request is
//! sent to one other node, once. It does not help where all nodes have to answer.

use scylla::errors::{DbError, RequestAttemptError};
use scylla::policies::retry::{
    DefaultRetryPolicy, RequestInfo, RetryDecision, RetryPolicy, RetrySession,
};

/// The driver's rule, and one other coordinator for requests that got too few answers.
#[derive(Debug)]
pub(crate) struct AskAnotherNode;

struct Retries {
    others: Box<dyn RetrySession>,
    has_asked_another: bool,
}

impl RetryPolicy for AskAnotherNode {
    fn new_session(&self) -> Box<dyn RetrySession> {
        let others = DefaultRetryPolicy::new().new_session();
        Box::new(Retries { others, has_asked_another: false })
    }
}

impl RetrySession for Retries {
    fn decide_should_retry(&mut self, request: RequestInfo<'_>) -> RetryDecision {
        let is_worthwhile = request.is_idempotent && has_too_few_answers(request.error);
        if is_worthwhile && !self.has_asked_another {
            self.has_asked_another = true;
            return RetryDecision::RetryNextTarget(None);
        }
        self.others.decide_should_retry(request)
    }

    fn reset(&mut self) {
        self.others.reset();
        self.has_asked_another = false;
    }
}

/// Whether the coordinator waited in vain for other nodes.
fn has_too_few_answers(error: &RequestAttemptError) -> bool {
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
