use super::order;
use std::collections::BTreeSet;

#[test]
fn each_is_there_once_and_every_order_comes() {
    let mut orders = BTreeSet::new();
    for block in 1..=400 {
        for case in 0..2 {
            let drawn = order(7, block, case, &[25, 50]);
            assert_eq!(drawn, order(7, block, case, &[25, 50]));
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 25, 50]);
            orders.insert(drawn);
        }
    }
    assert_eq!(orders.len(), 6);
    let differ = (1..=100)
        .filter(|block| order(7, *block, 0, &[10, 25, 50]) != order(7, *block, 1, &[10, 25, 50]));
    assert!(differ.count() > 50, "cases of a block have orders of their own");
}
