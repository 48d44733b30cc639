use super::*;

/// A read may find an old version before the new one, where level 0 overlaps after a repair.
#[test]
fn the_last_value_that_is_taken_counts() {
    let mut buffer = b"head".to_vec();
    let mut appending = Appending::to(&mut buffer, 5);
    assert_eq!(appending.copy(b"older"), Value::Appended);
    assert_eq!(appending.copy(b"longer"), Value::Bytes(Bytes::from_static(b"longer")));
    assert_eq!(appending.copy(b"new"), Value::Appended);
    assert_eq!(buffer, b"headnew");
}
