use super::*;

const INTERVAL: Duration = Duration::from_millis(2);

/// One stall of ten intervals delays the operations that were to begin during it.
#[test]
fn at_a_constant_rate_a_stall_counts_for_every_operation_that_it_delays() {
    let stall = INTERVAL * 10;
    let mut timer = Timer::start(Some(INTERVAL));
    for number in 0..20 {
        if number == 5 {
            std::thread::sleep(stall);
        }
        timer.lap();
    }
    let late = |intervals: u32| {
        let least = (INTERVAL * intervals).as_nanos() as u64;
        timer.latency.count_between(least, u64::MAX)
    };
    assert!(late(9) >= 1, "{} operations took nine intervals", late(9));
    assert!(late(5) >= 5, "{} operations took five intervals", late(5));
}

#[test]
fn at_a_constant_rate_operations_do_not_begin_early() {
    let started = Instant::now();
    let mut timer = Timer::start(Some(INTERVAL));
    (0..10).for_each(|_| timer.lap());
    assert!(started.elapsed() >= INTERVAL * 10);
    assert_eq!(timer.latency.len(), 10);
}

#[test]
fn at_full_speed_operations_follow_one_another() {
    let mut timer = Timer::start(None);
    std::thread::sleep(INTERVAL);
    timer.lap();
    timer.lap();
    let shortest_ns = timer.latency.min();
    assert!(timer.latency.max() >= INTERVAL.as_nanos() as u64);
    assert!(shortest_ns < INTERVAL.as_nanos() as u64, "the second took {shortest_ns} ns");
}
