use super::Retries;
use scylla::errors::{DbError, RequestAttemptError, WriteType};
use scylla::policies::retry::RetrySession;
use scylla::statement::Consistency;

fn of_node(error: DbError) -> RequestAttemptError {
    RequestAttemptError::DbError(error, String::new())
}

fn read_timeout(received: i32) -> RequestAttemptError {
    let consistency = Consistency::Quorum;
    of_node(DbError::ReadTimeout { consistency, received, required: 2, data_present: false })
}

fn write_timeout() -> RequestAttemptError {
    of_node(DbError::WriteTimeout {
        consistency: Consistency::Quorum,
        received: 1,
        required: 2,
        write_type: WriteType::Simple,
    })
}

#[test]
fn a_request_without_enough_responses_goes_to_one_other_coordinator() {
    for error in [read_timeout(1), write_timeout()] {
        let mut retries = Retries::new();
        assert!(retries.changes_coordinator(true, &error));
        assert!(!retries.changes_coordinator(true, &error), "once");
        retries.reset();
        assert!(retries.changes_coordinator(true, &error), "another request");
        assert!(!Retries::new().changes_coordinator(false, &error), "not idempotent");
    }
}

#[test]
fn the_driver_decides_where_enough_nodes_responded_and_for_other_errors() {
    let unavailable =
        DbError::Unavailable { consistency: Consistency::Quorum, required: 2, alive: 1 };
    let errors = [
        read_timeout(2),
        of_node(unavailable),
        of_node(DbError::Overloaded),
        RequestAttemptError::UnableToAllocStreamId,
    ];
    for error in errors {
        assert!(!Retries::new().changes_coordinator(true, &error), "{error}");
    }
}
