use super::*;

#[test]
fn a_reservation_counts_until_it_is_dropped() {
    let budget = MemoryBudget::new(100);
    let mut held = budget.try_reserve(Consumer::Requests, 60, 80).expect("60 of 80");
    assert!(budget.try_reserve(Consumer::Requests, 21, 80).is_none());
    held.resize(20);
    let more = budget.try_reserve(Consumer::Requests, 60, 80).expect("80 of 80");
    assert_eq!(budget.used_bytes_total(), 80);
    drop((held, more));
    assert_eq!(budget.used_bytes_total(), 0);
}
