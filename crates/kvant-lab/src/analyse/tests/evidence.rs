//! What explanations learn from the files of an attempt.

use super::*;

#[test]
fn time_before_the_write_is_waiting_for_a_connection() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    // In the second second, 20 requests were due 49 ms before they were written.
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, 50 * MS, 1));
    fixture.report();
    let (attempts, damaged) = evidence(&fixture.dir, None).unwrap();
    assert_eq!((attempts.len(), damaged.len()), (1, 0));
    let evidence = &attempts[0].evidence;
    assert!(evidence.is_of_client);
    let waits: Vec<u64> =
        evidence.windows.iter().map(|window| window.operations["get"].connection_wait_ns).collect();
    assert_eq!(waits[0], 0);
    assert_close(waits[1] as f64, (20 * 49 * MS) as f64);
}
