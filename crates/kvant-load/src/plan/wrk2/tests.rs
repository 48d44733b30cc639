use super::*;

const MS: u64 = NS_PER_MS;

/// 100 requests a second from 1 s on.
fn pace() -> Wrk2Pace {
    Wrk2Pace::new(100.0, 1_000 * MS, false)
}

#[test]
fn a_connection_on_its_plan_sends_when_due_and_not_before() {
    let mut pace = pace();
    for n in 0..50 {
        let due_ns = (1_000 + 10 * n) * MS;
        assert_eq!(pace.ask(due_ns - MS), Pace::Wait { until_ns: due_ns });
        assert_eq!(pace.ask(due_ns), Pace::Send { planned_ns: due_ns });
        assert_eq!(pace.corrected_from_ns(), due_ns);
        pace.complete(1);
    }
}

#[test]
fn one_that_is_behind_sends_at_twice_the_rate_until_it_is_not() {
    let mut pace = pace();
    assert_eq!(
        pace.ask(1_000 * MS),
        Pace::Send {
            planned_ns: 1_000 * MS
        }
    );
    // The answer takes 100 ms: ten requests behind.
    let mut now_ns = 1_100 * MS;
    pace.complete(1);
    let mut sent_ns = Vec::new();
    let mut planned_ns = Vec::new();
    while sent_ns.len() < 25 {
        match pace.ask(now_ns) {
            Pace::Send { planned_ns: planned } => {
                sent_ns.push(now_ns);
                planned_ns.push(planned);
                pace.complete(1);
            }
            Pace::Wait { until_ns } => now_ns = until_ns,
        }
    }
    for (n, planned) in planned_ns.iter().enumerate() {
        assert_eq!(
            *planned,
            (1_010 + 10 * n as u64) * MS,
            "latency counts from the plan, behind or not"
        );
    }
    let distances_ms: Vec<u64> = sent_ns.windows(2).map(|two| (two[1] - two[0]) / MS).collect();
    // 90 ms behind, 5 ms gained with each: the 19th is on the plan, and so are all after it.
    assert!(distances_ms[..18].iter().all(|ms| *ms == 5), "{distances_ms:?}");
    assert!(distances_ms[18..].iter().all(|ms| *ms == 10), "{distances_ms:?}");
}

#[test]
fn catching_up_starts_anew_with_each_delay() {
    let mut pace = pace();
    pace.complete(1);
    assert_eq!(pace.ask(1_005 * MS), Pace::Wait { until_ns: 1_010 * MS });
    assert_eq!(
        pace.ask(1_031 * MS),
        Pace::Send {
            planned_ns: 1_010 * MS
        }
    );
    pace.complete(1);
    assert_eq!(pace.ask(1_031 * MS), Pace::Wait { until_ns: 1_036 * MS });
}

#[test]
fn waits_are_rounded_up_to_full_milliseconds_when_asked() {
    let mut pace = Wrk2Pace::new(100.0, 0, true);
    pace.complete(1);
    let until_ms = |pace: &mut Wrk2Pace, now_ns| match pace.ask(now_ns) {
        Pace::Wait { until_ns } => (until_ns - now_ns) as f64 / MS as f64,
        Pace::Send { .. } => 0.0,
    };
    assert_eq!(until_ms(&mut pace, 10 * MS - 1), 1.0);
    assert_eq!(until_ms(&mut pace, 10 * MS - MS + 1), 1.0);
    // A full millisecond becomes two, as in wrk2.
    assert_eq!(until_ms(&mut pace, 9 * MS), 2.0);
    assert_eq!(until_ms(&mut pace, 8 * MS - 1), 3.0);
    assert_eq!(until_ms(&mut pace, 10 * MS), 0.0);
}

#[test]
fn all_of_a_batch_counts_from_its_first_request() {
    let mut pace = pace();
    assert_eq!(
        pace.ask(1_001 * MS),
        Pace::Send {
            planned_ns: 1_000 * MS
        }
    );
    pace.complete(1);
    pace.complete(1);
    assert_eq!(pace.corrected_from_ns(), 1_000 * MS);
    pace.complete(1);
    assert_eq!(pace.ask(1_001 * MS), Pace::Wait { until_ns: 1_030 * MS });
    assert_eq!(
        pace.ask(1_030 * MS),
        Pace::Send {
            planned_ns: 1_030 * MS
        }
    );
    assert_eq!(pace.completed(), 3);
}

#[test]
fn what_is_planned_is_counted_from_the_start_of_the_connection() {
    let pace = pace();
    let counts = [0, 1_000, 1_001, 1_010, 1_011, 2_000].map(|ms| pace.planned_before(ms * MS));
    assert_eq!(counts, [0, 0, 1, 1, 2, 100]);
}

#[test]
fn connections_of_a_thread_start_5_ms_apart() {
    assert_eq!(
        [0, 1, 255].map(stagger).map(|stagger| stagger.as_millis()),
        [0, 5, 1_275]
    );
}
