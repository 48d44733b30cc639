use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const S: u64 = 1_000_000_000;

#[test]
fn a_few_refusals_need_no_rest() {
    let pacer = Pacer::default();
    for _ in 0..100 {
        let rests: Vec<u64> = (0..BURST_COUNT).map(|_| pacer.rest_ns(S)).collect();
        assert!(rests.iter().all(|&rest_ns| rest_ns == 0));
        assert!(pacer.rest_ns(S) > 0);
        pacer.paid_ns.set(0);
    }
}

#[test]
fn clients_that_retry_at_once_take_a_twentieth_of_the_time() {
    let pacer = Pacer::default();
    // When each of 200 connections is read next.
    let mut connections: BinaryHeap<Reverse<u64>> = (0..200).map(|_| Reverse(S)).collect();
    let mut refused_count = 0;
    let end_ns = 11 * S;
    while let Some(Reverse(now_ns)) = connections.pop() {
        if now_ns >= end_ns {
            break;
        }
        refused_count += 1;
        connections.push(Reverse(now_ns + 1_000 + pacer.rest_ns(now_ns)));
    }
    let share = (refused_count * REFUSAL_NS) as f64 / (10 * S) as f64;
    assert!((0.045..0.055).contains(&share), "share {share}");
}

#[test]
fn rests_are_short_and_soon_over() {
    let pacer = Pacer::default();
    let longest_ns = (0..100_000).map(|_| pacer.rest_ns(S)).max();
    assert_eq!(longest_ns, Some(REST_MAX_NS));
    assert_eq!(pacer.rest_ns(S + REST_MAX_NS + SHARE_NS), 0);
}
