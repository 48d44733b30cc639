use super::Figures;
use kvant_env::testing::MockClock;
use scylla::errors::RequestAttemptError;
use scylla::observability::history::{HistoryListener, RequestId};
use scylla::policies::retry::RetryDecision;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn attempts_are_counted_by_node_and_time() {
    let clock = Arc::new(MockClock::new(0));
    let figures = Figures::new(clock.clone());
    let addr = |port| SocketAddr::from(([127, 0, 0, 1], port));
    for (port, time_us) in [(1, 250), (1, 251), (2, 3_000_000)] {
        let attempt = figures.log_attempt_start(RequestId(0), None, addr(port));
        clock.advance(Duration::from_micros(time_us));
        figures.log_attempt_success(attempt);
    }
    let attempt = figures.log_attempt_start(RequestId(0), None, addr(2));
    let error = RequestAttemptError::UnableToAllocStreamId;
    figures.log_attempt_error(attempt, &error, &RetryDecision::RetryNextTarget(None));
    figures.log_attempt_error(attempt, &error, &RetryDecision::DontRetry);

    let nodes = figures.stats().nodes;
    let counts = |index: usize| -> Vec<(Option<u64>, u64)> {
        let counts = nodes[index].counts_up_to_us.iter().copied();
        counts.filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!(nodes.len(), 2);
    assert_eq!((nodes[0].addr, nodes[0].total_us), (addr(1), 501));
    assert_eq!(counts(0), [(Some(250), 1), (Some(500), 1)]);
    assert_eq!(counts(1), [(None, 1)]);
    assert_eq!((nodes[1].error_count, nodes[1].retry_count), (2, 1));
}
