//! The attempts of one request: where they went, and how they ended.
//!
//! The driver tells of the beginning and the end of each, but not of those that it drops: attempts
//! that lost against a second read, that were in flight when the request's time had passed, or
//! whose request was dropped. They end with this.
//!
//! Threads: any; a request is on one at a time.

use crate::figures::{Figures, Kind, Node, Phase};
use crate::gate::Ending;
use crate::second_reads::SecondReads;
use kvant_base::lock::NamedMutex;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError, RequestError};
use scylla::observability::history::{AttemptId, HistoryListener, RequestId, SpeculativeId};
use scylla::policies::retry::RetryDecision;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a request has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// The node that has answered, or was asked last: the request's coordinator.
    pub node: Option<SocketAddr>,
    /// How often it was sent.
    pub attempt_count: u32,
    /// Whether a second read was answered first.
    pub second_read_won: bool,
    /// From the beginning until that node was asked.
    pub before_ns: u64,
    /// The cluster's number of its trace of the request.
    pub trace_id: Option<u128>,
}

pub(crate) struct Attempts {
    figures: Arc<Figures>,
    second_reads: Arc<SecondReads>,
    kind: Kind,
    /// Whether its time says something about the node that is asked.
    is_measured: bool,
    begin_ns: u64,
    state: NamedMutex<State>,
}

#[derive(Default)]
struct State {
    attempts: Vec<Attempt>,
    /// The attempt that was answered.
    done: Option<usize>,
    has_timed_out: bool,
    /// The last error response of a node, and the index of its attempt.
    last_answer: Option<(usize, RequestAttemptError)>,
}

struct Attempt {
    node: Arc<Node>,
    begin_ns: u64,
    is_second: bool,
    has_ended: bool,
    /// Whether a write may be there: it was sent, and the answer does not say that it was not done.
    may_be_done: bool,
}

impl Attempts {
    pub(crate) fn new(
        figures: &Arc<Figures>,
        second_reads: &Arc<SecondReads>,
        kind: Kind,
        is_measured: bool,
    ) -> Arc<Attempts> {
        Arc::new(Attempts {
            figures: Arc::clone(figures),
            second_reads: Arc::clone(second_reads),
            kind,
            is_measured,
            begin_ns: figures.now_ns(),
            state: NamedMutex::new("cluster_attempts", State::default()),
        })
    }

    pub(crate) fn course(&self) -> Course {
        let state = self.state.lock();
        let asked = state.done.or(state.attempts.len().checked_sub(1));
        let Some(asked) = asked.and_then(|index| state.attempts.get(index)) else {
            return Course::default();
        };
        Course {
            node: Some(asked.node.addr()),
            attempt_count: u32::try_from(state.attempts.len()).unwrap_or(u32::MAX),
            second_read_won: state.done.is_some() && asked.is_second,
            before_ns: asked.begin_ns.saturating_sub(self.begin_ns),
            trace_id: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().attempts.is_empty()
    }

    pub(crate) fn is_write(&self) -> bool {
        self.kind == Kind::Write
    }

    /// Whether an attempt may have done a write, other than the one at index `beside`.
    pub(crate) fn may_be_done(&self, beside: Option<usize>) -> bool {
        let state = self.state.lock();
        let others = state.attempts.iter().enumerate().filter(|(at, _)| Some(*at) != beside);
        self.is_write() && others.map(|(_, one)| one).any(|one| one.may_be_done)
    }

    /// Whether an attempt may have done a write, other than the one that `error` is of. One that
    /// found no node to ask is of none.
    pub(crate) fn may_be_done_beside(&self, error: &ExecutionError) -> bool {
        let last = || self.state.lock().attempts.len().checked_sub(1);
        match error {
            ExecutionError::LastAttemptError(_) => self.may_be_done(last()),
            _ => self.may_be_done(None),
        }
    }

    /// The last error response of a node, and the index of its attempt.
    pub(crate) fn last_answer(&self) -> Option<(usize, RequestAttemptError)> {
        self.state.lock().last_answer.clone()
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        let state = self.state.lock();
        let open = state.attempts.iter().filter(|attempt| !attempt.has_ended);
        for attempt in open {
            let node = &attempt.node;
            if state.has_timed_out {
                node.timeout_count.fetch_add(1, Ordering::Relaxed);
            }
            // It would have taken longer.
            if self.kind == Kind::Read && !attempt.is_second && state.done.is_some() {
                let time_ns = self.figures.now_ns().saturating_sub(attempt.begin_ns);
                self.second_reads.note_first(time_ns / 1_000);
            }
            self.figures.end(node, self.is_measured, Ending::Unanswered, attempt.begin_ns);
        }
    }
}

impl fmt::Debug for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attempts")
    }
}

impl HistoryListener for Attempts {
    fn log_request_start(&self) -> RequestId {
        RequestId(0)
    }

    fn log_request_success(&self, _request_id: RequestId) {}

    fn log_request_error(&self, _request_id: RequestId, error: &RequestError) {
        self.state.lock().has_timed_out = matches!(error, RequestError::RequestTimeout(_));
    }

    fn log_new_speculative_fiber(&self, _request_id: RequestId) -> SpeculativeId {
        self.second_reads.note_sent();
        SpeculativeId(0)
    }

    fn log_attempt_start(
        &self,
        _request_id: RequestId,
        speculative_id: Option<SpeculativeId>,
        node_addr: SocketAddr,
    ) -> AttemptId {
        let (node, begin_ns) = (self.figures.node(node_addr), self.figures.now_ns());
        let is_second = speculative_id.is_some();
        node.begin(self.is_measured, begin_ns);
        if is_second {
            node.second_read_count.fetch_add(1, Ordering::Relaxed);
        }
        let mut state = self.state.lock();
        state.attempts.push(Attempt {
            node,
            begin_ns,
            is_second,
            has_ended: false,
            may_be_done: true,
        });
        AttemptId(state.attempts.len() - 1)
    }

    fn log_attempt_success(&self, attempt_id: AttemptId) {
        let mut state = self.state.lock();
        let Some(attempt) = state.attempts.get_mut(attempt_id.0) else { return };
        attempt.has_ended = true;
        let time_ns = self.figures.now_ns().saturating_sub(attempt.begin_ns);
        let before_ns = attempt.begin_ns.saturating_sub(self.begin_ns);
        let node = &attempt.node;
        self.figures.end(node, self.is_measured, Ending::Done, attempt.begin_ns);
        node.note_time(self.kind, Phase::Before, before_ns / 1_000);
        node.note_time(self.kind, Phase::Attempt, time_ns / 1_000);
        if attempt.is_second {
            node.second_read_won_count.fetch_add(1, Ordering::Relaxed);
            self.second_reads.note_won();
        } else if self.kind == Kind::Read {
            self.second_reads.note_first(time_ns / 1_000);
        }
        state.done = Some(attempt_id.0);
    }

    fn log_attempt_error(
        &self,
        attempt_id: AttemptId,
        error: &RequestAttemptError,
        decision: &RetryDecision,
    ) {
        let mut state = self.state.lock();
        let Some(attempt) = state.attempts.get_mut(attempt_id.0) else { return };
        attempt.has_ended = true;
        attempt.may_be_done = may_be_done(error);
        let node = &attempt.node;
        let has_answered = matches!(error, RequestAttemptError::DbError(..));
        let ending = if has_answered { Ending::Failed } else { Ending::Unanswered };
        self.figures.end(node, self.is_measured, ending, attempt.begin_ns);
        let is_timeout = matches!(
            error,
            RequestAttemptError::DbError(
                DbError::ReadTimeout { .. } | DbError::WriteTimeout { .. },
                _
            )
        );
        let is_retried = matches!(
            decision,
            RetryDecision::RetrySameTarget(_) | RetryDecision::RetryNextTarget(_)
        );
        let add = |count: &AtomicU64, is: bool| count.fetch_add(is.into(), Ordering::Relaxed);
        add(&node.error_count, true);
        add(&node.replica_timeout_count, is_timeout);
        add(&node.retry_count, is_retried);
        if has_answered {
            state.last_answer = Some((attempt_id.0, error.clone()));
        }
    }
}

/// Whether a write may be there after this error of an attempt.
fn may_be_done(error: &RequestAttemptError) -> bool {
    match error {
        RequestAttemptError::UnableToAllocStreamId
        | RequestAttemptError::SerializationError(_)
        | RequestAttemptError::CqlRequestSerialization(_) => false,
        RequestAttemptError::DbError(error, _) => !matches!(
            error,
            DbError::Unavailable { .. }
                | DbError::Overloaded
                | DbError::IsBootstrapping
                | DbError::Unauthorized
                | DbError::Unprepared { .. }
                | DbError::Invalid
                | DbError::SyntaxError
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
