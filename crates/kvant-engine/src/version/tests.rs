use super::test_support::{table, test_rng};
use super::*;
use crate::format::ValueKind;
use kvant_env::rng::Rng;

struct Fixture {
    queue: Arc<ObsoleteQueue>,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture { queue: ObsoleteQueue::new() }
    }

    fn open(&self, meta: &FileMeta) -> Arc<TableFile<()>> {
        TableFile::new(meta.clone(), Arc::new(()), Arc::clone(&self.queue))
    }

    /// `base` with the tables of `added`, given as (level, description).
    fn grown(&self, base: &Version<()>, added: Vec<(usize, FileMeta)>) -> Result<Version<()>> {
        let opened: Vec<_> = added.iter().map(|(_, meta)| self.open(meta)).collect();
        base.apply(&VersionEdit { added, ..VersionEdit::default() }, &opened)
    }
}

fn nums<'a>(tables: impl IntoIterator<Item = &'a Arc<TableFile<()>>>) -> Vec<u64> {
    tables.into_iter().map(|table| table.meta.num.0).collect()
}

#[test]
fn tables_are_in_the_order_of_their_level() {
    let fixture = Fixture::new();
    let mut same_seq_as_3 = table(4, "a", "z");
    same_seq_as_3.seq_max = table(3, "a", "z").seq_max;
    let added = vec![
        (0, table(2, "a", "z")),
        (0, table(3, "a", "z")),
        (0, same_seq_as_3),
        (1, table(7, "m", "p")),
        (1, table(5, "q", "q")),
        (1, table(6, "a", "l")),
    ];
    let version = fixture.grown(&Version::empty(), added).unwrap();
    assert_eq!(nums(version.tables(0)), [4, 3, 2]);
    assert_eq!(nums(version.tables(1)), [6, 7, 5]);
    assert_eq!(
        version.totals(1),
        LevelTotals { file_bytes: 3000, entry_count: 30, tombstone_count: 0 }
    );
    assert_eq!(nums(version.newest_tables_for_key(b"b")), [4, 3, 2]);
    assert_eq!(nums(version.deeper_tables_for_key(b"l")[0]), [6]);
    assert_eq!(nums(version.deeper_tables_for_key(b"ll")[0]), [0; 0]);
}

#[test]
fn an_edit_that_violates_an_invariant_is_rejected() {
    let fixture = Fixture::new();
    let base = fixture
        .grown(&Version::empty(), vec![(1, table(1, "d", "f")), (1, table(2, "h", "k"))])
        .unwrap();
    let rejected = |added: Vec<(usize, FileMeta)>| {
        let error = fixture.grown(&base, added).err().expect("rejected");
        assert_eq!(error.kind(), ErrorKind::Corruption);
        error.message().to_string()
    };
    assert!(rejected(vec![(2, table(1, "a", "b"))]).contains("exists"));
    for (first, last) in [("f", "g"), ("g", "h"), ("e", "e"), ("a", "z"), ("a", "d"), ("i", "z")] {
        assert!(rejected(vec![(1, table(9, first, last))]).contains("overlap"), "{first}..={last}");
    }
    assert!(fixture.grown(&base, vec![(1, table(9, "g", "g")), (0, table(10, "a", "z"))]).is_ok());

    let unknown = VersionEdit { removed: vec![(2, FileNum(1))], ..VersionEdit::default() };
    assert!(
        base.apply(&unknown, &[]).err().expect("rejected").message().contains("where it is not")
    );
    let unopened = VersionEdit { added: vec![(3, table(9, "a", "b"))], ..VersionEdit::default() };
    assert!(base.apply(&unopened, &[]).err().expect("rejected").message().contains("not open"));
}

#[test]
fn a_moved_table_is_shared_and_a_replaced_one_is_removed() {
    let fixture = Fixture::new();
    let base = fixture
        .grown(&Version::empty(), vec![(0, table(1, "d", "f")), (0, table(2, "h", "k"))])
        .unwrap();
    let edit = VersionEdit {
        removed: vec![(0, FileNum(1)), (0, FileNum(2))],
        added: vec![(6, table(1, "d", "f")), (6, table(3, "h", "i"))],
        ..VersionEdit::default()
    };
    let next = base.apply(&edit, &[fixture.open(&table(3, "h", "i"))]).unwrap();
    assert!(Arc::ptr_eq(&next.tables(6)[0], &base.tables(0)[1]));
    assert_eq!(nums(&base.removed_by(&edit)), [2]);

    for replaced in base.removed_by(&edit) {
        replaced.mark_obsolete();
    }
    assert_eq!(fixture.queue.pinned_bytes(), 1000);
    drop(base);
    assert_eq!(fixture.queue.pop().map(|file| file.num), Some(FileNum(2)));
    drop(next);
    assert_eq!(fixture.queue.pop(), None, "live tables of a dropped version are not queued");
}

/// Keys of random length that share prefixes longer and shorter than eight bytes.
fn random_key(rng: &mut Rng) -> Vec<u8> {
    let stem: &[u8] = [&b""[..], b"ab", b"user:000", b"user:0000"][rng.below(4) as usize];
    let mut key = stem.to_vec();
    for _ in 0..=rng.below(3) {
        key.push([0, b'a', b'b', 0xff][rng.below(4) as usize]);
    }
    key
}

#[test]
fn searches_agree_with_a_scan() {
    let mut rng = test_rng();
    for _ in 0..200 {
        let mut keys: Vec<_> = (0..rng.below(40)).map(|_| random_key(&mut rng)).collect();
        keys.sort();
        keys.dedup();
        let fixture = Fixture::new();
        let added = keys.chunks_exact(2).zip(1..).map(|(bounds, num)| {
            let mut meta = table(num, "", "");
            meta.smallest.user_key = bounds[0].clone();
            meta.largest.user_key = bounds[1].clone();
            (3, meta)
        });
        let version = fixture.grown(&Version::empty(), added.collect()).unwrap();
        let all = version.tables(3);
        for _ in 0..50 {
            let key = random_key(&mut rng);
            let covering = all.iter().filter(|table| table.meta.covers(&key));
            assert_eq!(nums(version.deeper_tables_for_key(&key)[2]), nums(covering));
            let target = InternalKeyRef::new(&key, SeqNum(rng.below(200)), ValueKind::Put);
            let index = all.iter().take_while(|table| table.meta.largest.as_ref() < target).count();
            assert_eq!(version.first_table_at(3, target), index);
        }
    }
}
