use super::*;
use crate::collect::{handler, lane, threads};
use std::thread;

const NOTHING: Passed =
    Passed { wall_ns: 0, cpu_ns: 0, lately_cpu_ns: 0, lately_off_ns: 0, is_since_wait: false };

#[test]
fn a_timer_starts_for_a_live_thread_but_not_for_an_ended_one() {
    // Without the handler a signal would terminate the process.
    handler::install().expect("permitted");
    lane::keep_ready(4).expect("memory");
    let own = lane::of_this_thread().expect("a free lane");
    drop(Timer::start(own, 3_600_000_000_000).expect("a live thread"));

    let ended = thread::spawn(|| lane::of_this_thread().expect("a free lane"));
    let ended = ended.join().expect("it ends");
    while !threads::has_ended(ended.owner()) {
        thread::yield_now();
    }
    assert!(Timer::start(ended, 1_000_000).is_err());
}

#[test]
fn a_late_signal_of_a_call_counts_with_the_probability_of_time_on_a_processor() {
    const COUNT: u32 = 100_000;
    let on_share = |lately_cpu_ns, lately_off_ns, late_ns| {
        let passed = Passed { lately_cpu_ns, lately_off_ns, ..NOTHING };
        let on_count = (0..COUNT).filter(|_| passed.was_running(late_ns, true)).count();
        on_count as f64 / f64::from(COUNT)
    };
    // The standard deviation is 0.14 %.
    assert!((on_share(300_000, 900_000, 200_000) - 0.25).abs() < 0.01);
    assert_eq!(on_share(300_000, 0, 200_000), 1.0);
    assert_eq!(on_share(0, 900_000, 200_000), 0.0);
    assert_eq!(on_share(1, 30_000, LATE_NS_MIN), 1.0);
    assert_eq!(on_share(0, 900_000, LATE_NS_MIN), 0.0);
}

#[test]
fn a_late_signal_outside_of_calls_waited_for_a_processor_if_there_was_such_a_wait() {
    let was_running = |lately_off_ns| {
        let passed = Passed { lately_cpu_ns: 5_000_000, lately_off_ns, ..NOTHING };
        passed.was_running(200_000, false)
    };
    assert!(!was_running(199_000));
    // It ran for some of the delay.
    assert!(was_running(150_000));
}

/// As the difference of both clocks it would be 0 for a call that had no processor for long.
#[test]
fn of_the_time_since_a_timer_fired_the_share_on_a_processor_counts() {
    let passed = Passed { lately_cpu_ns: 500_000, lately_off_ns: 4_500_000, ..NOTHING };
    assert_eq!(passed.cpu_ns_of(4_000_000), 400_000);
}

#[test]
fn moments_are_a_sequence_that_continues_between_looks() {
    const COUNT: u32 = 100_000;
    const MEAN_NS: f64 = 1_000_000.0;
    let (mut last_ns, mut sum_ns) = (0, 0);
    for _ in 0..COUNT {
        let next_ns = next_moment_ns(last_ns, last_ns, MEAN_NS, |_| ());
        assert!((500_000..=1_500_000).contains(&(next_ns - last_ns)));
        sum_ns += next_ns - last_ns;
        last_ns = next_ns;
    }
    // The standard deviations of the means are 0.1 %.
    let mean = sum_ns as f64 / f64::from(COUNT) / MEAN_NS;
    assert!((mean - 1.0).abs() < 0.01, "{mean} times the mean");

    // Longer gaps are likelier to contain a given moment: on average half of 1 + 1/12 is left.
    for looked_after_ns in [5_250_000, 60_000_000] {
        let next_ns = |_| next_moment_ns(0, looked_after_ns, MEAN_NS, |_| ());
        let left_ns = (0..COUNT).map(|number| next_ns(number) - looked_after_ns);
        let mean = left_ns.sum::<u64>() as f64 / f64::from(COUNT) / MEAN_NS;
        assert!(
            (mean - 13.0 / 24.0).abs() < 0.02,
            "{mean} of the mean left after {looked_after_ns} ns"
        );
    }
}

#[test]
fn moments_that_passed_are_seen() {
    let mut passed_ns = Vec::new();
    let next_ns = next_moment_ns(7, 3_000_000, 1_000_000.0, |moment_ns| passed_ns.push(moment_ns));
    assert_eq!(passed_ns[0], 7);
    passed_ns.push(next_ns);
    let gaps = passed_ns.windows(2).map(|two| two[1] - two[0]);
    assert!(gaps.clone().all(|gap_ns| (500_000..=1_500_000).contains(&gap_ns)), "{passed_ns:?}");
    assert!(gaps.count() >= 2 && passed_ns[passed_ns.len() - 2] <= 3_000_000, "{passed_ns:?}");
}
