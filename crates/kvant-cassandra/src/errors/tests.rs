use super::{Asked, of_request, refuses_user};
use kvant_base::{Error, ErrorKind};
use scylla::errors::{
    ConnectionPoolError, DbError, ExecutionError, PrepareError, RequestAttemptError,
    SchemaAgreementError,
};
use scylla::statement::Consistency;
use std::time::Duration;

fn of_write(error: &ExecutionError, may_be_done: bool) -> Error {
    of_request(error, Asked::Write, may_be_done)
}

fn unavailable() -> ExecutionError {
    let error = DbError::Unavailable { consistency: Consistency::Quorum, required: 2, alive: 1 };
    ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()))
}

#[test]
fn a_request_that_no_node_did_says_so() {
    let error = of_write(&unavailable(), false);
    assert_eq!(error.kind(), ErrorKind::TooFewReplicas { required: 2, received: 1 });
    assert!(error.message().starts_with("nothing was done"), "{error}");
    assert_eq!(of_write(&ExecutionError::EmptyPlan, false).kind(), ErrorKind::Away);
}

#[test]
fn a_write_that_an_earlier_attempt_may_have_done_is_never_said_not_to_be_there() {
    let error = of_write(&unavailable(), true);
    assert_eq!(error.kind(), ErrorKind::TooFewReplicas { required: 2, received: 1 });
    let full = ExecutionError::LastAttemptError(RequestAttemptError::UnableToAllocStreamId);
    assert_eq!(of_write(&full, false).kind(), ErrorKind::Overloaded);
    for error in [error, of_write(&full, true), of_write(&ExecutionError::EmptyPlan, true)] {
        assert!(!error.message().contains("nothing was done"), "{error}");
        assert!(error.message().contains("may be there or not"), "{error}");
        assert!(!matches!(error.kind(), ErrorKind::Away | ErrorKind::Overloaded), "{error}");
    }
}

#[test]
fn only_a_write_without_an_answer_may_be_there() {
    let timeout = ExecutionError::RequestTimeout(Duration::from_secs(8));
    for (asked, may_be_there) in [(Asked::Write, true), (Asked::Read, false)] {
        let error = of_request(&timeout, asked, false);
        assert_eq!(error.kind(), ErrorKind::NoAnswer);
        assert_eq!(error.message().contains("a write may be there"), may_be_there, "{error}");
    }
}

#[test]
fn what_a_cluster_may_do_later_is_not_an_error_of_the_request() {
    let no_pool = || ConnectionPoolError::Initializing;
    let away = [
        ExecutionError::PrepareError(PrepareError::ConnectionPoolError(no_pool())),
        ExecutionError::SchemaAgreementError(SchemaAgreementError::ConnectionPoolError(no_pool())),
        ExecutionError::SchemaAgreementError(SchemaAgreementError::Timeout(Duration::ZERO)),
    ];
    for error in &away {
        assert_eq!(of_write(error, false).kind(), ErrorKind::Away, "{error}");
    }
    let first_attempt = RequestAttemptError::UnableToAllocStreamId;
    let full = ExecutionError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt });
    assert_eq!(of_write(&full, false).kind(), ErrorKind::Overloaded);
}

#[test]
fn a_cluster_that_cannot_check_a_password_does_not_refuse_it() {
    let wrong = "Provided username kvant and/or password are incorrect";
    let away = "Unable to perform authentication: Cannot achieve consistency level LOCAL_ONE";
    assert!(refuses_user(&DbError::AuthenticationError, wrong));
    assert!(!refuses_user(&DbError::AuthenticationError, away));
    assert!(refuses_user(&DbError::Unauthorized, away));
    assert!(!refuses_user(&DbError::Overloaded, wrong));
}
