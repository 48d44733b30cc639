use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn the_ring_keeps_the_latest_entries() {
    let events = Events::new(3);
    let span = events.begin(EventKind::Flush, 10, Vec::new());
    events.add_complete(EventKind::Fsync, 12, 15, vec![("us", Field::Number(3))]);
    events.end(EventKind::Flush, span, 10, 20, Vec::new());
    let other = events.begin(EventKind::Compaction, 30, Vec::new());
    assert_ne!(span, other);
    let numbers: Vec<u64> = events.after(0, 9).iter().map(|event| event.number).collect();
    assert_eq!((numbers, events.last_number()), (vec![2, 3, 4], 4));
    assert_eq!(events.after(3, 9)[0].kind, EventKind::Compaction);
}

#[test]
fn overlapping_events_are_listed_once_including_those_in_progress() {
    let events = Events::new(16);
    let flush = events.begin(EventKind::Flush, 10, Vec::new());
    events.begin(EventKind::Compaction, 15, Vec::new());
    events.end(EventKind::Flush, flush, 10, 20, Vec::new());
    events.add_complete(EventKind::Fsync, 40, 50, Vec::new());
    let kinds = |start_ns, end_ns| -> Vec<EventKind> {
        let found = events.overlapping(start_ns, end_ns);
        found.iter().map(|event| event.kind).collect()
    };
    assert_eq!(kinds(0, 9), []);
    assert_eq!(kinds(12, 13), [EventKind::Flush]);
    assert_eq!(kinds(20, 20), [EventKind::Compaction, EventKind::Flush]);
    assert_eq!(kinds(21, 45), [EventKind::Compaction, EventKind::Fsync]);
}

#[test]
fn a_listener_is_called_at_the_next_event_or_immediately_for_a_missed_one() {
    let events = Events::new(4);
    let call_count = Arc::new(AtomicU64::new(0));
    let listener = || -> Listener {
        let call_count = Arc::clone(&call_count);
        Box::new(move || {
            call_count.fetch_add(1, Ordering::Relaxed);
        })
    };
    events.notify_after(0, listener());
    assert_eq!(call_count.load(Ordering::Relaxed), 0);
    events.begin(EventKind::Stall, 1, Vec::new());
    assert_eq!(call_count.load(Ordering::Relaxed), 1);
    events.notify_after(0, listener());
    assert_eq!(call_count.load(Ordering::Relaxed), 2);
    events.notify_after(1, listener());
    events.begin(EventKind::Stall, 2, Vec::new());
    assert_eq!(call_count.load(Ordering::Relaxed), 3);
}
