use super::has_too_few_answers;
use scylla::errors::{DbError, RequestAttemptError, WriteType};
use scylla::statement::Consistency;

fn of_node(error: DbError) -> RequestAttemptError {
    RequestAttemptError::DbError(error, String::new())
}

fn read_timeout(received: i32) -> RequestAttemptError {
    let consistency = Consistency::Quorum;
    of_node(DbError::ReadTimeout { consistency, received, required: 2, data_present: false })
}

#[test]
fn another_coordinator_is_asked_where_nodes_did_not_answer_in_time() {
    let write = DbError::WriteTimeout {
        consistency: Consistency::Quorum,
        received: 1,
        required: 2,
        write_type: WriteType::Simple,
    };
    assert!(has_too_few_answers(&of_node(write)));
    assert!(has_too_few_answers(&read_timeout(1)));
}

#[test]
fn the_drivers_rule_decides_where_enough_nodes_have_answered_or_another_error_came() {
    assert!(!has_too_few_answers(&read_timeout(2)));
    let unavailable =
        DbError::Unavailable { consistency: Consistency::Quorum, required: 2, alive: 1 };
    for error in [unavailable, DbError::Overloaded, DbError::ServerError] {
        assert!(!has_too_few_answers(&of_node(error)));
    }
    assert!(!has_too_few_answers(&RequestAttemptError::UnableToAllocStreamId));
}
