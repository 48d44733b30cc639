use super::*;
use crate::format::SeqNum;
use crate::iter::test_support::{Entry, VecIter, collect, random_entries};
use crate::version::test_support::{table, test_rng};
use crate::version::{ObsoleteQueue, VersionEdit};
use std::sync::atomic::{AtomicUsize, Ordering};

type Table = Vec<Entry>;

/// Tables of `entries`, divided where `cut` returns true and only between user keys.
fn tables_of(entries: &[Entry], mut cut: impl FnMut() -> bool) -> Vec<Arc<TableFile<Table>>> {
    let same_table = |a: &Entry, b: &Entry| a.0.user_key == b.0.user_key || !cut();
    let queue = ObsoleteQueue::new();
    let chunks = entries.chunk_by(same_table).zip(1..);
    let tables = chunks.map(|(chunk, num)| {
        let mut meta = table(num, "", "");
        meta.smallest = chunk[0].0.clone();
        meta.largest = chunk[chunk.len() - 1].0.clone();
        TableFile::new(meta, Arc::new(chunk.to_vec()), Arc::clone(&queue))
    });
    tables.collect()
}

fn version_of(tables: &[Arc<TableFile<Table>>]) -> Arc<Version<Table>> {
    let added = tables.iter().map(|table| (2, table.meta.clone())).collect();
    Arc::new(
        Version::empty().apply(&VersionEdit { added, ..VersionEdit::default() }, tables).unwrap(),
    )
}

#[test]
fn tables_are_concatenated() {
    let mut rng = test_rng();
    for _ in 0..100 {
        let count = rng.below(40);
        let mut entries = random_entries(&mut rng, count, 1);
        entries.sort_by(|a, b| a.0.as_ref().cmp(&b.0.as_ref()));
        let tables = tables_of(&entries, || rng.one_in(2));
        let runs = [TableRun::Level(version_of(&tables), 2), TableRun::Tables(tables)];
        for run in runs {
            let mut iter = LevelIter::new(run, |table| Ok(VecIter::over(Arc::clone(&table.table))));
            assert!(!iter.valid(), "not positioned");
            iter.seek_to_first().unwrap();
            assert_eq!(collect(&mut iter), entries);
            for target in random_entries(&mut rng, 20, 1 + count / 2) {
                iter.seek(target.0.as_ref()).unwrap();
                let from = entries.partition_point(|(key, _)| key.as_ref() < target.0.as_ref());
                assert_eq!(iter.valid(), from < entries.len());
                assert_eq!(collect(&mut iter), entries[from..]);
            }
        }
    }
}

#[test]
fn a_table_is_opened_when_reached_and_released_when_left() {
    let mut entries = random_entries(&mut test_rng(), 60, 1);
    entries.sort_by(|a, b| a.0.as_ref().cmp(&b.0.as_ref()));
    entries.dedup_by(|a, b| a.0.user_key == b.0.user_key);
    let tables = tables_of(&entries, || true);
    assert_eq!(tables.len(), entries.len());
    let open_count = AtomicUsize::new(0);
    let mut iter = LevelIter::new(TableRun::Tables(tables.clone()), |table| {
        open_count.fetch_add(1, Ordering::Relaxed);
        Ok(VecIter::over(Arc::clone(&table.table)))
    });
    let last = entries.len() - 1;
    iter.seek(entries[last].0.as_ref()).unwrap();
    assert_eq!(open_count.load(Ordering::Relaxed), 1, "only the table of the target");
    iter.seek(entries[last].0.as_ref()).unwrap();
    assert_eq!(open_count.load(Ordering::Relaxed), 1, "still open");
    assert_eq!(Arc::strong_count(&tables[last].table), 2);
    iter.next().unwrap();
    assert!(!iter.valid());
    assert_eq!(Arc::strong_count(&tables[last].table), 1);
    iter.seek(InternalKeyRef::seek(b"zzz", SeqNum(1))).unwrap();
    assert!(!iter.valid());
}

#[test]
fn an_error_of_a_table_invalidates_the_iterator() {
    let mut entries = random_entries(&mut test_rng(), 60, 1);
    entries.sort_by(|a, b| a.0.as_ref().cmp(&b.0.as_ref()));
    let tables = tables_of(&entries, || false);
    let mut fail_at = 1;
    let mut iter = LevelIter::new(TableRun::Tables(tables), |table| {
        let mut cursor = VecIter::over(Arc::clone(&table.table));
        cursor.fail_at = Some(fail_at);
        fail_at = 0;
        Ok(cursor)
    });
    iter.seek_to_first().unwrap();
    assert!(iter.next().is_err());
    assert!(!iter.valid());
    assert!(iter.seek_to_first().is_err());
    assert!(!iter.valid());
}
