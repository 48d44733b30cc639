use super::*;
use crate::iter::test_support::{VecIter, delete, entry, expiring, put, random_entries, visible};
use crate::version::test_support::test_rng;
use std::sync::Arc;

fn records<I: InternalIterator>(iter: &mut VisibleIter<I>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    while let Some(record) = iter.next().unwrap() {
        records.push((record.key.to_vec(), record.value.to_vec()));
    }
    assert_eq!(iter.next().unwrap(), None, "the end stays the end");
    records
}

#[test]
fn visible_records_agree_with_the_definition() {
    let mut rng = test_rng();
    for _ in 0..300 {
        let count = rng.below(120);
        let entries = random_entries(&mut rng, count, 1);
        let visible_at = rng.below(count + 2);
        let now_ms = rng.below(100);
        let expected = visible(&entries, visible_at, now_ms);
        let mut bound = || format!("some/long/stem/{:02}", rng.below(13)).into_bytes();
        let (start, end) = (bound(), bound());

        let mut all =
            VisibleIter::new(VecIter::new(entries.clone()), SeqNum(visible_at), now_ms, None);
        assert_eq!(all.next().unwrap(), None, "not positioned");
        all.seek(b"").unwrap();
        let shown = records(&mut all);
        assert_eq!(shown, expected.clone().into_iter().collect::<Vec<_>>());
        assert!(all.skipped_count() + shown.len() as u64 <= count);

        let mut part =
            VisibleIter::new(VecIter::new(entries), SeqNum(visible_at), now_ms, Some(&end));
        part.seek(&start).unwrap();
        let within = expected.into_iter().filter(|(key, _)| (&start..&end).contains(&key));
        assert_eq!(records(&mut part), within.collect::<Vec<_>>());
    }
}

#[test]
fn skipped_entries_are_counted_and_expired_ones_are_absent() {
    let entries = vec![
        put("a", 9),
        put("a", 3),
        delete("b", 8),
        put("b", 2),
        expiring("c", 7, 50),
        expiring("d", 6, 51),
        put("e", 11),
    ];
    let mut iter = VisibleIter::new(VecIter::new(entries.clone()), SeqNum(10), 50, None);
    iter.seek(b"").unwrap();
    assert_eq!(
        iter.next().unwrap(),
        Some(Record { key: b"a", value: b"a@9", expires_at_ms: None })
    );
    assert_eq!(
        iter.next().unwrap(),
        Some(Record { key: b"d", value: b"x", expires_at_ms: Some(51) })
    );
    assert_eq!(iter.next().unwrap(), None);
    assert_eq!(iter.skipped_count(), 5, "a@3, b@8, b@2, c@7, e@11");

    let mut iter = VisibleIter::new(VecIter::new(entries), SeqNum(10), 51, None);
    iter.seek(b"b").unwrap();
    assert_eq!(iter.next().unwrap(), None, "d has expired too");
}

#[test]
fn many_versions_of_a_key_are_skipped_by_a_seek() {
    let mut entries: Vec<_> = (1..=100_000).map(|seq| put("hot", seq)).collect();
    entries.push(put("next", 5));
    for (visible_at, newest) in [(100_000, 100_000), (50_000, 50_000), (1, 1)] {
        let mut iter = VisibleIter::new(VecIter::new(entries.clone()), SeqNum(visible_at), 0, None);
        iter.seek(b"").unwrap();
        let hot = iter.next().unwrap().expect("a version is visible");
        assert_eq!(hot.value, format!("hot@{newest}").as_bytes());
        let following = iter.next().unwrap().map(|record| record.key);
        assert_eq!(following, (visible_at >= 5).then_some(&b"next"[..]));
        let steps = iter.inner.step_count;
        assert!(steps < 100, "{steps} steps at {visible_at}");
    }
}

/// Sorted entries with some moved, as a damaged block whose checksum is valid has them.
#[test]
fn entries_out_of_order_end_a_range_and_keys_ascend_until_there() {
    let mut rng = test_rng();
    let mut failed_count = 0;
    for _ in 0..2_000 {
        let mut entries: Vec<_> = (1..=40).map(|seq| put("k20", seq)).collect();
        entries.extend((10..30).map(|key| put(&format!("k{key}"), 50)));
        entries.extend((10..30).step_by(3).map(|key| delete(&format!("k{key}"), 60)));
        entries.sort_by(|a, b| a.0.as_ref().cmp(&b.0.as_ref()));
        for _ in 0..=rng.below(3) {
            let [from, to] = [(); 2].map(|()| rng.below(entries.len() as u64) as usize);
            let moved = entries.remove(from);
            entries.insert(to, moved);
        }
        let visible_at = SeqNum(rng.below(70));
        let mut iter = VisibleIter::new(VecIter::over(Arc::new(entries)), visible_at, 0, None);
        iter.seek(b"").unwrap();
        let mut last_key = Vec::new();
        let end = loop {
            match iter.next() {
                Ok(Some(record)) => {
                    assert!(last_key.as_slice() < record.key, "{last_key:?} {record:?}");
                    last_key = record.key.to_vec();
                }
                end => break end.map(drop),
            }
        };
        if let Err(error) = end {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            failed_count += 1;
        }
    }
    assert!(failed_count > 1_000, "{failed_count}");
}

#[test]
fn bad_entries_and_failing_sources_are_lasting_errors() {
    let mut bad_kind = put("b", 1);
    bad_kind.0.trailer |= 0x70;
    let short = entry("b", 1, ValueKind::PutExpiring, &[0; 7]);
    for bad in [bad_kind, short] {
        let mut iter = VisibleIter::new(VecIter::new(vec![put("a", 1), bad]), SeqNum(9), 0, None);
        iter.seek(b"").unwrap();
        assert!(iter.next().unwrap().is_some());
        for _ in 0..2 {
            assert_eq!(iter.next().unwrap_err().kind(), ErrorKind::Corruption);
        }
    }
    let mut failing = VecIter::new(vec![put("a", 1), put("b", 1)]);
    failing.fail_at = Some(1);
    let mut iter = VisibleIter::new(failing, SeqNum(9), 0, None);
    iter.seek(b"").unwrap();
    assert!(iter.next().unwrap().is_some());
    assert!(iter.next().is_err() && iter.next().is_err());
    assert!(iter.seek(b"b").is_err() && iter.next().is_err());
    iter.seek(b"a").unwrap();
    assert!(iter.next().unwrap().is_some(), "positioned anew");
}
