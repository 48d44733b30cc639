use super::*;
use crate::format::ValueKind;
use crate::iter::test_support::{VecIter, collect};

fn keys(text: &str) -> VecIter {
    let entry = |byte: u8| {
        let key = InternalKeyRef::new(&[byte], SeqNum(7), ValueKind::Put).to_owned();
        (key, Vec::new())
    };
    VecIter::new(text.bytes().map(entry).collect())
}

fn slice(text: &str, from: &str, to: Option<&str>) -> String {
    let to = to.map(|to| to.as_bytes().to_vec());
    let mut iter = SliceIter::new(Box::new(keys(text)), from.as_bytes().to_vec(), to);
    iter.seek_to_first().unwrap();
    let entries = collect(&mut iter);
    entries.iter().map(|(key, _)| char::from(key.user_key[0])).collect()
}

#[test]
fn a_slice_includes_its_start_and_excludes_its_end() {
    assert_eq!(slice("abcdef", "b", Some("e")), "bcd");
    assert_eq!(slice("abcdef", "", Some("c")), "ab");
    assert_eq!(slice("abcdef", "d", None), "def");
    assert_eq!(slice("adf", "b", Some("d")), "");
    assert_eq!(slice("abc", "x", None), "");
}

#[test]
fn a_seek_before_the_slice_finds_its_start() {
    let mut iter = SliceIter::new(Box::new(keys("abcdef")), b"c".to_vec(), Some(b"e".to_vec()));
    iter.seek(InternalKeyRef::seek(b"a", SeqNum::MAX)).unwrap();
    assert_eq!(iter.key().user_key, b"c");
    iter.seek(InternalKeyRef::seek(b"d", SeqNum::MAX)).unwrap();
    assert_eq!(iter.key().user_key, b"d");
    iter.seek(InternalKeyRef::seek(b"e", SeqNum::MAX)).unwrap();
    assert!(!iter.valid());
}
