use super::*;

const MS: u64 = NS_PER_MS;

/// 100 requests per second from 1 s on.
fn pace() -> Wrk2Pace {
    Wrk2Pace::new(100.0, 1_000 * MS, false)
}

#[test]
fn a_connection_on_its_plan_sends_when_due_and_not_before() {
    let mut pace = pace();
    for n in 0..50 {
        let due_ns = (1_000 + 10 * n) * MS;
        assert_eq!(pace.next_step(due_ns - MS), Wrk2Step::Wait { until_ns: due_ns });
        assert_eq!(pace.next_step(due_ns), Wrk2Step::Send { planned_ns: due_ns });
        pace.complete(1);
    }
}

/// Send times and planned times of the next `count` requests, with immediate responses.
fn send(pace: &mut Wrk2Pace, mut now_ns: u64, count: usize) -> (Vec<u64>, Vec<u64>) {
    let (mut sent_ms, mut planned_ms) = (Vec::new(), Vec::new());
    while sent_ms.len() < count {
        match pace.next_step(now_ns) {
            Wrk2Step::Send { planned_ns } => {
                sent_ms.push(now_ns / MS);
                planned_ms.push(planned_ns / MS);
                pace.complete(1);
            }
            Wrk2Step::Wait { until_ns } => now_ns = until_ns,
        }
    }
    (sent_ms, planned_ms)
}

#[test]
fn a_late_connection_sends_at_twice_the_rate_until_it_is_on_its_plan() {
    let mut pace = pace();
    let (sent_ms, planned_ms) = send(&mut pace, 1_100 * MS, 30);
    let plan: Vec<u64> = (0..30).map(|n| 1_000 + 10 * n).collect();
    assert_eq!(planned_ms, plan, "latency counts from the plan, behind or not");
    // 100 ms behind, each request gains 5 ms: the 20th and all later ones are on the plan.
    let catching_up: Vec<u64> = (0..20).map(|n| 1_100 + 5 * n).collect();
    assert_eq!(sent_ms[..20], catching_up);
    assert_eq!(sent_ms[20..], plan[20..]);
}

#[test]
fn a_late_response_to_a_punctual_request_is_made_up_for_at_once() {
    let mut pace = pace();
    assert_eq!(pace.next_step(1_000 * MS), Wrk2Step::Send { planned_ns: 1_000 * MS });
    pace.complete(1);
    // Twice the rate counts from that request and allows 20 by now; 10 are due.
    let (sent_ms, _) = send(&mut pace, 1_100 * MS, 12);
    assert_eq!(
        sent_ms,
        [1_100, 1_100, 1_100, 1_100, 1_100, 1_100, 1_100, 1_100, 1_100, 1_100, 1_110, 1_120]
    );
}

#[test]
fn catching_up_restarts_with_each_delay() {
    let mut pace = pace();
    pace.complete(1);
    assert_eq!(pace.next_step(1_005 * MS), Wrk2Step::Wait { until_ns: 1_010 * MS });
    assert_eq!(pace.next_step(1_031 * MS), Wrk2Step::Send { planned_ns: 1_010 * MS });
    pace.complete(1);
    assert_eq!(pace.next_step(1_031 * MS), Wrk2Step::Wait { until_ns: 1_036 * MS });
}

#[test]
fn waits_are_rounded_up_to_full_milliseconds_on_request() {
    let mut pace = Wrk2Pace::new(100.0, 0, true);
    pace.complete(1);
    let until_ms = |pace: &mut Wrk2Pace, now_ns| match pace.next_step(now_ns) {
        Wrk2Step::Wait { until_ns } => (until_ns - now_ns) as f64 / MS as f64,
        Wrk2Step::Send { .. } => 0.0,
    };
    assert_eq!(until_ms(&mut pace, 10 * MS - 1), 1.0);
    assert_eq!(until_ms(&mut pace, 10 * MS - MS + 1), 1.0);
    // As in wrk2, a full millisecond becomes two.
    assert_eq!(until_ms(&mut pace, 9 * MS), 2.0);
    assert_eq!(until_ms(&mut pace, 8 * MS - 1), 3.0);
    assert_eq!(until_ms(&mut pace, 10 * MS), 0.0);
}

#[test]
fn a_whole_batch_counts_from_its_first_request() {
    let mut pace = pace();
    assert_eq!(pace.next_step(1_001 * MS), Wrk2Step::Send { planned_ns: 1_000 * MS });
    pace.complete(1);
    pace.complete(1);
    pace.complete(1);
    assert_eq!(pace.next_step(1_001 * MS), Wrk2Step::Wait { until_ns: 1_030 * MS });
    assert_eq!(pace.next_step(1_030 * MS), Wrk2Step::Send { planned_ns: 1_030 * MS });
    assert_eq!(pace.completed(), 3);
}

#[test]
fn the_plan_counts_from_the_start_of_the_connection() {
    let pace = pace();
    let counts = [0, 1_000, 1_001, 1_010, 1_011, 2_000].map(|ms| pace.planned_before(ms * MS));
    assert_eq!(counts, [0, 0, 1, 1, 2, 100]);
}

#[test]
fn connections_of_a_thread_start_5_ms_apart() {
    assert_eq!([0, 1, 255].map(stagger).map(|stagger| stagger.as_millis()), [0, 5, 1_275]);
}
