use super::{Acks, acks};
use scylla::statement::Consistency::{self, All, One, Quorum, Three, Two};

#[test]
fn the_least_consistency_with_enough_answers_is_chosen() {
    let cases: [(Option<u32>, u32, u32, Consistency); 11] = [
        (None, 1, 1, All),
        (None, 3, 2, Quorum),
        (None, 4, 3, Quorum),
        (Some(1), 3, 1, One),
        (Some(2), 3, 2, Quorum),
        (Some(3), 3, 3, All),
        (Some(2), 5, 2, Two),
        (Some(3), 5, 3, Quorum),
        (Some(4), 5, 5, All),
        (Some(3), 7, 3, Three),
        (Some(4), 9, 5, Quorum),
    ];
    for (ack_count, replica_count, count, consistency) in cases {
        let found = acks(ack_count, replica_count).expect("enough nodes");
        assert_eq!(found, Acks { count, consistency }, "{ack_count:?} of {replica_count}");
    }
    assert!(acks(Some(4), 3).is_err());
}
