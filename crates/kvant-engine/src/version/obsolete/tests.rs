use super::*;
use crate::version::test_support::table;
use std::sync::atomic::AtomicUsize;

#[test]
fn an_obsolete_table_is_pinned_until_dropped_and_then_queued() {
    let queue = ObsoleteQueue::new();
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&wakes);
    queue.on_push(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });

    let live = TableFile::new(table(1, "a", "b"), Arc::new(()), Arc::clone(&queue));
    let replaced = TableFile::new(table(2, "c", "d"), Arc::new(()), Arc::clone(&queue));
    let reader = Arc::clone(&replaced);
    replaced.mark_obsolete();
    replaced.mark_obsolete();
    drop(replaced);
    assert_eq!(queue.pinned_bytes(), 1000, "marked twice, counted once");
    assert_eq!(queue.pop(), None, "a reader holds it");

    drop(reader);
    drop(live);
    assert_eq!(queue.pinned_bytes(), 0);
    assert_eq!(queue.waiting_bytes(), 1000);
    assert_eq!(wakes.load(Ordering::Relaxed), 1);

    let file = queue.pop().expect("the marked table is queued");
    assert_eq!(file, ObsoleteFile { num: FileNum(2), file_bytes: 1000 });
    assert_eq!(queue.waiting_bytes(), 0);
    assert_eq!(queue.pop(), None);
}
