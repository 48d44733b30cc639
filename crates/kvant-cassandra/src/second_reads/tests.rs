use super::{INTERVAL_COUNT, READS_EACH, SecondReads, end_us_of, interval_of};
use kvant_env::testing::MockClock;
use std::sync::Arc;
use std::time::Duration;

/// After 1,000 reads of a millisecond.
fn after_calm_reads(is_on: bool) -> Arc<SecondReads> {
    let clock = Arc::new(MockClock::new(5_000_000_000));
    let reads = SecondReads::new(is_on, clock.clone());
    (0..1_000).for_each(|_| reads.note_first(1_000));
    clock.advance(Duration::from_secs(1));
    reads
}

#[test]
fn intervals_follow_one_another() {
    for index in 0..INTERVAL_COUNT - 1 {
        let end_us = end_us_of(index);
        assert!(end_us < end_us_of(index + 1));
        assert_eq!((interval_of(end_us), interval_of(end_us + 1)), (index, index + 1));
    }
    assert_eq!((interval_of(0), interval_of(u64::MAX)), (0, INTERVAL_COUNT - 1));
}

#[test]
fn a_second_read_is_sent_after_the_99th_percentile_of_the_first() {
    let clock = Arc::new(MockClock::new(5_000_000_000));
    let reads = SecondReads::new(true, clock.clone());
    assert_eq!(reads.delay(), None, "no read is known");
    for number in 0..1_000 {
        reads.note_first(if number % 100 == 99 { 50_000 } else { 1_000 + number });
    }
    clock.advance(Duration::from_secs(1));
    let delay = reads.delay().expect("known").as_micros();
    assert!((1_990..=2_500).contains(&delay), "{delay}");
    // What the cluster does now counts, after a while.
    for _ in 0..10 {
        (0..1_000).for_each(|_| reads.note_first(20_000));
        clock.advance(Duration::from_secs(1));
        reads.delay();
    }
    let delay = reads.delay().expect("known").as_micros();
    assert!((20_000..=25_000).contains(&delay), "{delay}");
}

#[test]
fn second_reads_are_few_whatever_the_cluster_does() {
    let reads = after_calm_reads(true);
    // All reads have become slow.
    for _ in 0..10_000 {
        if reads.delay().is_some() {
            reads.note_sent();
        }
        reads.note_first(1_000_000);
    }
    let sent = reads.stats().count;
    assert!((500..=11_000 / READS_EACH.unsigned_abs()).contains(&sent), "{sent}");
}

#[test]
fn second_reads_of_reads_in_flight_together_are_paid_for_before_the_next_one() {
    let reads = after_calm_reads(true);
    // 3,000 reads begin before any of them has turned out to be slow.
    assert!((0..3_000).all(|_| reads.delay().is_some()));
    (0..3_000).for_each(|_| reads.note_sent());
    for _ in 0..3_000 * READS_EACH - 1_000 {
        reads.note_first(1_000);
        assert_eq!(reads.delay(), None);
    }
    (0..READS_EACH).for_each(|_| reads.note_first(1_000));
    assert!(reads.delay().is_some());
}

#[test]
fn second_reads_that_are_off_are_not_sent() {
    let reads = after_calm_reads(false);
    assert_eq!(reads.delay(), None);
}
