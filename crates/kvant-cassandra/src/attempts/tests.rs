use super::Attempts;
use crate::figures::{Figures, Kind, NodeStats};
use crate::second_reads::SecondReads;
use kvant_env::testing::MockClock;
use scylla::errors::{
    BrokenConnectionErrorKind, ConnectionPoolError, DbError, ExecutionError, RequestAttemptError,
    RequestError,
};
use scylla::observability::history::{HistoryListener, RequestId, SpeculativeId};
use scylla::policies::retry::RetryDecision;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

struct Fixture {
    clock: Arc<MockClock>,
    figures: Arc<Figures>,
    second_reads: Arc<SecondReads>,
}

impl Fixture {
    fn new() -> Fixture {
        let clock = Arc::new(MockClock::new(0));
        let second_reads = SecondReads::new(true, clock.clone());
        Fixture { figures: Figures::new(clock.clone(), true), second_reads, clock }
    }

    fn attempts(&self, kind: Kind) -> Arc<Attempts> {
        Attempts::new(&self.figures, &self.second_reads, kind, true)
    }

    fn node(&self, number: u8) -> NodeStats {
        let stats = self.figures.stats();
        stats.into_iter().find(|node| node.addr == addr(number)).expect("it was asked")
    }
}

fn addr(number: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, number], 9042))
}

fn start(attempts: &Attempts, number: u8) -> scylla::observability::history::AttemptId {
    attempts.log_attempt_start(RequestId(0), None, addr(number))
}

#[test]
fn attempts_are_counted_by_node_and_time() {
    let fixture = Fixture::new();
    let attempts = fixture.attempts(Kind::Write);
    let first = start(&attempts, 1);
    fixture.clock.advance(Duration::from_micros(300));
    assert_eq!(fixture.node(1).in_flight, 1);
    let full = RequestAttemptError::UnableToAllocStreamId;
    attempts.log_attempt_error(first, &full, &RetryDecision::RetryNextTarget(None));
    let second = start(&attempts, 2);
    fixture.clock.advance(Duration::from_micros(250));
    assert!(!attempts.may_be_done(Some(second.0)), "the first was not sent");
    attempts.log_attempt_success(second);

    let course = attempts.course();
    assert_eq!((course.node, course.attempt_count), (Some(addr(2)), 2));
    assert_eq!((course.before_ns, course.second_read_won), (300_000, false));
    let (one, two) = (fixture.node(1), fixture.node(2));
    assert_eq!((one.error_count, one.retry_count, one.in_flight), (1, 1, 0));
    assert_eq!((two.error_count, two.in_flight), (0, 0));
    let counted = |name: &str| {
        let times = two.times.iter().find(|t| (t.kind, t.phase) == ("write", name));
        let times = times.expect("every phase is there");
        let up_to = times.counts_up_to_us.iter().find(|(_, count)| *count > 0);
        (times.total_us, up_to.copied())
    };
    assert_eq!(counted("before"), (300, Some((Some(500), 1))));
    assert_eq!(counted("attempt"), (250, Some((Some(250), 1))));
}

#[test]
fn attempts_that_the_driver_drops_are_in_flight_no_longer() {
    let fixture = Fixture::new();
    let attempts = fixture.attempts(Kind::Write);
    start(&attempts, 1);
    let timeout = RequestError::RequestTimeout(Duration::from_secs(8));
    attempts.log_request_error(RequestId(0), &timeout);
    drop(attempts);
    assert_eq!((fixture.node(1).in_flight, fixture.node(1).timeout_count), (0, 1));
    // A request that is dropped itself has not timed out.
    let dropped = fixture.attempts(Kind::Write);
    start(&dropped, 1);
    drop(dropped);
    assert_eq!((fixture.node(1).in_flight, fixture.node(1).timeout_count), (0, 1));
}

#[test]
fn a_second_read_that_is_answered_first_has_won() {
    let fixture = Fixture::new();
    let attempts = fixture.attempts(Kind::Read);
    start(&attempts, 1);
    attempts.log_new_speculative_fiber(RequestId(0));
    let second = attempts.log_attempt_start(RequestId(0), Some(SpeculativeId(0)), addr(2));
    attempts.log_attempt_success(second);
    assert!(attempts.course().second_read_won);
    drop(attempts);
    let two = fixture.node(2);
    assert_eq!((two.second_read_count, two.second_read_won_count), (1, 1));
    let stats = fixture.second_reads.stats();
    assert_eq!((stats.count, stats.won_count, fixture.node(1).in_flight), (1, 1, 0));
}

#[test]
fn a_write_that_a_node_did_not_do_is_known_not_to_be_there() {
    let fixture = Fixture::new();
    let failed = |kind: Kind, error: DbError| {
        let attempts = fixture.attempts(kind);
        let attempt = start(&attempts, 1);
        let error = RequestAttemptError::DbError(error, String::new());
        attempts.log_attempt_error(attempt, &error, &RetryDecision::RetryNextTarget(None));
        let second = start(&attempts, 2);
        attempts.may_be_done(Some(second.0))
    };
    assert!(!failed(Kind::Write, DbError::Overloaded));
    assert!(!failed(Kind::Write, DbError::IsBootstrapping));
    assert!(failed(Kind::Write, DbError::ServerError));
    assert!(!failed(Kind::Read, DbError::ServerError), "a read writes nothing");
    assert_eq!(fixture.node(1).replica_timeout_count, 0);
}

#[test]
fn the_last_answer_is_kept_and_other_attempts_may_have_done_the_write() {
    let fixture = Fixture::new();
    let attempts = fixture.attempts(Kind::Write);
    let failed = |number: u8, error: RequestAttemptError| {
        let attempt = start(&attempts, number);
        attempts.log_attempt_error(attempt, &error, &RetryDecision::RetryNextTarget(None));
    };
    assert!(attempts.last_answer().is_none());
    failed(1, RequestAttemptError::DbError(DbError::ServerError, String::new()));
    failed(2, RequestAttemptError::DbError(DbError::Overloaded, String::new()));
    failed(3, RequestAttemptError::UnableToAllocStreamId);
    let (at, answer) = attempts.last_answer().unwrap();
    let is_overloaded = matches!(answer, RequestAttemptError::DbError(DbError::Overloaded, _));
    assert!(at == 1 && is_overloaded, "{at}: {answer}");
    assert!(attempts.may_be_done(Some(at)), "the first may have");
    assert!(!attempts.may_be_done(Some(0)), "no other may have");
}

/// The only node was sent the write, its connection broke, and there is no other connection.
#[test]
fn a_write_may_be_done_although_no_node_was_left_for_a_retry() {
    let fixture = Fixture::new();
    let attempts = fixture.attempts(Kind::Write);
    let silent = BrokenConnectionErrorKind::KeepaliveTimeout(addr(1).ip());
    let broken = RequestAttemptError::BrokenConnectionError(silent.into());
    let first = start(&attempts, 1);
    attempts.log_attempt_error(first, &broken, &RetryDecision::RetryNextTarget(None));
    let no_node = ExecutionError::ConnectionPoolError(ConnectionPoolError::Initializing);
    assert!(attempts.may_be_done_beside(&no_node));
    assert!(attempts.may_be_done_beside(&ExecutionError::EmptyPlan));
    let of_it = ExecutionError::LastAttemptError(broken);
    assert!(!attempts.may_be_done_beside(&of_it), "its own error says whether it may be");
}
