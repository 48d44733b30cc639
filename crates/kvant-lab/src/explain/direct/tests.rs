use super::*;

#[test]
fn parts_that_exceed_their_whole_by_a_rounding_leave_nothing() {
    let parts = [("a", 0.1), ("b", 0.5), ("c", 0.7)];
    let parts = parts.map(|(name, part)| (Cause::Lock(name.to_owned()), part));
    let mut waited = Waited { parts: parts.into(), behind_others: 0.1 };
    limit(&mut waited);
    assert!(waited.direct() > 1.0, "{waited:?}");
    assert_eq!((waited.left(), waited.behind_others), (0.0, 0.0));
}
