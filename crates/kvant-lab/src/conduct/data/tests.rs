use super::*;

#[test]
fn different_fingerprints_of_equal_data_are_noticed() {
    let mut fingerprints = Fingerprints::default();
    assert_eq!(fingerprints.add("1000 keys", "one", "aaaa"), None);
    assert_eq!(fingerprints.add("1000 keys", "two", "aaaa"), None);
    // Other data.
    assert_eq!(fingerprints.add("2000 keys", "two", "bbbb"), None);
    let mismatch = fingerprints.add("1000 keys", "three", "cccc").unwrap();
    assert_eq!(mismatch, "three has the fingerprint cccc, one has aaaa");
}
