use super::*;

#[test]
fn properties_that_no_manifest_can_describe_are_malformed() {
    let key =
        |user_key: &[u8], kind| InternalKey { user_key: user_key.to_vec(), trailer: 1 << 8 | kind };
    let mut good = TableProperties::new(Compression::None, "a test", Some(FileNum(7)));
    good.count(key(b"a", ValueKind::Put as u64).as_ref(), b"value", true).expect("counted");
    good.largest = good.smallest.clone();
    good.data_block_count = 1;
    type Spoil = fn(&mut TableProperties);
    let spoils: [(Spoil, &str); 4] = [
        (|it| it.smallest.user_key.clear(), "bounded by"),
        (|it| it.smallest.trailer |= 0xff, "bounded by"),
        (|it| it.largest.trailer = 0x70, "bounded by"),
        (|it| it.key_bytes = u64::MAX, "contradict"),
    ];
    assert_eq!(TableProperties::decode(&good.encode(), 2).ok().as_ref(), Some(&good));
    for (spoil, words) in spoils {
        let mut spoilt = good.clone();
        spoil(&mut spoilt);
        let error = TableProperties::decode(&spoilt.encode(), 2).expect_err(words);
        assert!(error.0.contains(words), "{}", error.0);
    }
}
