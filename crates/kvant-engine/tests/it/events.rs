//! Events of background work, stalls and slow fsyncs.

use crate::common::{DIR, World, put, small_options};
use kvant_base::events::{Edge, Event, EventKind, Events, Field};
use kvant_base::{ErrorKind, Result};
use kvant_engine::{Db, Options, Resources, SyncLevel};
use kvant_env::Env;
use kvant_env::clock::SystemClock;
use kvant_env::spawner::ThreadSpawner;
use kvant_env::testing::{FaultOp, FaultyFs};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(env: &Env, options: &Options) -> Result<(Db, Arc<Events>)> {
    let events = Events::new(10_000);
    let resources = Resources { events: Arc::clone(&events), ..Resources::new(options) };
    let db = Db::open(env.clone(), Path::new(DIR), options.clone(), resources)?;
    Ok((db, events))
}

fn world() -> (World, FaultyFs) {
    let disk = FaultyFs::new(3);
    (World::new(3, Arc::new(disk.clone())), disk)
}

fn of_kind(events: &Events, kind: EventKind) -> Vec<Arc<Event>> {
    let all = events.after(0, usize::MAX).into_iter();
    all.filter(|event| event.kind == kind).collect()
}

fn number(event: &Event, name: &str) -> u64 {
    match field(event, name) {
        Some(Field::Number(number)) => *number,
        other => panic!("{name} is {other:?} in {event:?}"),
    }
}

fn field<'a>(event: &'a Event, name: &str) -> Option<&'a Field> {
    let mut fields = event.fields.iter();
    fields.find(|(field_name, _)| *field_name == name).map(|(_, field)| field)
}

fn text(text: &'static str) -> Option<Field> {
    Some(Field::Text(text.into()))
}

/// Every begin event is followed by its end event.
fn assert_paired(events: &[Arc<Event>]) {
    for event in events {
        let same = |other: &&Arc<Event>| other.span == event.span;
        let pair: Vec<_> = events.iter().filter(same).map(|event| event.edge).collect();
        assert_eq!(pair, [Edge::Begin, Edge::End], "{event:?}");
    }
}

#[test]
fn flush_and_compaction_events_have_the_bytes_read_and_written() {
    let (world, _) = world();
    let (db, events) = open(&world.env, &small_options(SyncLevel::Os)).expect("opens");
    for number in 0..100 {
        db.put(format!("key{number}").as_bytes(), &[b'v'; 50], None).expect("written");
    }
    db.compact().expect("compacted");
    let flushes = of_kind(&events, EventKind::Flush);
    assert_paired(&flushes);
    let sum = |events: &[Arc<Event>], name| -> u64 {
        let ends = events.iter().filter(|event| event.edge == Edge::End);
        ends.map(|event| number(event, name)).sum()
    };
    let flushed = db.stats().flushes;
    assert_eq!((sum(&flushes, "level"), sum(&flushes, "entries")), (0, 100));
    assert_eq!(sum(&flushes, "memtable_bytes"), flushed.read_bytes);
    assert_eq!(sum(&flushes, "table_bytes"), flushed.written_bytes);
    assert_eq!(field(&flushes[0], "table_bytes"), None, "not known at the beginning");

    let compactions = of_kind(&events, EventKind::Compaction);
    assert_paired(&compactions);
    let begin = &compactions[0];
    assert_eq!(number(begin, "from_level"), 0);
    assert!(number(begin, "to_level") > 0);
    assert!(number(begin, "input_bytes") > 0);
    let last = compactions.last().expect("a compaction");
    assert_eq!(field(last, "reason").cloned(), text("manual"));
    let written_bytes = db.stats().compactions.written_bytes;
    assert_eq!(sum(&compactions, "output_bytes"), written_bytes);
}

#[test]
fn a_memtable_of_many_small_entries_is_sealed_by_entry_count() {
    let (world, _) = world();
    let options = Options {
        memtable_bytes: 1 << 20,
        memtable_entries_max: 30,
        ..small_options(SyncLevel::Os)
    };
    let (db, events) = open(&world.env, &options).expect("opens");
    for number in 0..100 {
        db.put(format!("key{number}").as_bytes(), b"v", None).expect("written");
    }
    db.flush().expect("flushed");
    let flushes = of_kind(&events, EventKind::Flush);
    let ends = flushes.iter().filter(|event| event.edge == Edge::End);
    let entries: Vec<u64> = ends.map(|event| number(event, "entries")).collect();
    assert_eq!(entries, [30, 30, 30, 10]);
}

#[test]
fn the_end_event_of_a_failed_flush_has_its_error() {
    let (world, disk) = world();
    let (db, events) = open(&world.env, &small_options(SyncLevel::Os)).expect("opens");
    db.put(b"key", b"value", None).expect("written");
    disk.fail_next(FaultOp::Create, ".sst", io::ErrorKind::Other, 1);
    db.flush().expect_err("no table can be made");
    let flushes = of_kind(&events, EventKind::Flush);
    assert_paired(&flushes[..2]);
    assert!(matches!(field(&flushes[1], "error"), Some(Field::Text(_))));
}

#[test]
fn a_stall_is_one_event_from_the_first_delayed_writer_to_the_release() {
    let (world, disk) = world();
    let (db, events) = open(&world.env, &small_options(SyncLevel::Os)).expect("opens");
    disk.fail_next(FaultOp::Create, ".sst", io::ErrorKind::Other, u64::MAX);
    let mut held_count = 0;
    for number in 0_u64.. {
        let batch = put(&number.to_be_bytes(), &[b'v'; 1_000]);
        match db.submit(batch, Box::new(|result| result.expect("written"))) {
            Ok(()) => assert_eq!(held_count, 0),
            Err(refused) => {
                assert_eq!(refused.error.kind(), ErrorKind::Stalled);
                held_count += 1;
                world.clock.advance(Duration::from_millis(5));
            }
        }
        world.spawner.run_until_idle();
        if held_count == 3 {
            break;
        }
    }
    let stalls = of_kind(&events, EventKind::Stall);
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    assert_eq!(stalls[0].edge, Edge::Begin);
    assert_eq!(field(&stalls[0], "reason").cloned(), text("memtables"));
    disk.clear_faults();
    db.flush().expect("flushed");
    let stalls = of_kind(&events, EventKind::Stall);
    assert_eq!(stalls.len(), 2, "{stalls:?}");
    assert_paired(&stalls);
    assert_eq!(field(&stalls[1], "reason").cloned(), text("memtables"));
    let end_ns = stalls[1].end_ns.expect("end events have an end time");
    assert!(end_ns - stalls[1].start_ns >= 15_000_000, "{stalls:?}");
}

#[test]
fn a_fast_fsync_is_no_event() {
    let (world, _) = world();
    let (db, events) = open(&world.env, &small_options(SyncLevel::Always)).expect("opens");
    db.put(b"key", b"value", None).expect("written");
    db.compact().expect("compacted");
    assert!(db.stats().wal.sync_count > 0);
    // On the mock clock an fsync takes no time.
    assert_eq!(of_kind(&events, EventKind::Fsync), []);
}

#[test]
fn slow_fsyncs_of_the_log_and_of_a_table_are_events() {
    const DELAY: Duration = Duration::from_millis(20);
    let disk = FaultyFs::new(1);
    let clock = Arc::new(SystemClock::new());
    let env = Env {
        fs: Arc::new(disk.clone()),
        clock: clock.clone(),
        spawner: Arc::new(ThreadSpawner::new(clock)),
    };
    let (db, events) = open(&env, &small_options(SyncLevel::Always)).expect("opens");
    disk.set_sync_delay(DELAY);
    let before = events.last_number();
    db.put(b"key", b"value", None).expect("written");
    db.flush().expect("flushed");
    for file in ["wal", "table", "directory"] {
        let reported = events.after(before, usize::MAX);
        let fsync = reported
            .iter()
            .find(|event| {
                event.kind == EventKind::Fsync && field(event, "file").cloned() == text(file)
            })
            .unwrap_or_else(|| panic!("no {file} in {reported:?}"));
        assert_eq!(fsync.edge, Edge::End);
        assert!(number(fsync, "us") >= 20_000, "{fsync:?}");
        assert!(fsync.end_ns.expect("end events have an end time") - fsync.start_ns >= 20_000_000);
        assert_eq!(field(fsync, "error"), None);
    }
}
