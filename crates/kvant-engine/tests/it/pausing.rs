//! Flushes and compactions rest while background work is paused.

use crate::common::{DIR, World, small_options};
use kvant_base::events::{Edge, Event, EventKind, Events};
use kvant_base::{ErrorKind, MemoryBudget};
use kvant_engine::{Db, Options, Resources, SyncLevel};
use kvant_env::testing::FaultyFs;
use kvant_env::{Clock, Env, Fs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_NS: u64 = PAUSE.as_nanos() as u64;

fn open(env: &Env, options: &Options) -> (Db, Arc<Events>) {
    let events = Events::new(10_000);
    let memory = MemoryBudget::new(64 << 20);
    let resources = Resources { memory, events: Arc::clone(&events), ..Resources::new(options) };
    let db = Db::open(env.clone(), Path::new(DIR), options.clone(), resources).expect("opens");
    (db, events)
}

/// The end entries of a kind, oldest first.
fn ended(events: &Events, kind: EventKind) -> Vec<Arc<Event>> {
    let all = events.after(0, usize::MAX).into_iter();
    all.filter(|event| event.kind == kind && event.edge == Edge::End).collect()
}

fn end_ns(event: &Event) -> u64 {
    event.end_ns.expect("an end entry has its time")
}

#[test]
fn background_work_rests_until_the_pause_ends_by_itself() {
    let world = World::new(5, Arc::new(FaultyFs::new(5)));
    let (db, events) = open(&world.env, &small_options(SyncLevel::Os));
    db.put(b"key", b"value", None).expect("written");
    let begun_ns = world.clock.monotonic_ns();
    assert!(db.pause_background(PAUSE).expect("open"));
    assert!(!db.pause_background(PAUSE).expect("open"), "one runs");
    assert_eq!(world.clock.monotonic_ns(), begun_ns, "it begins at once");
    db.put(b"other", b"value", None).expect("writers are not held");
    assert_eq!(world.clock.monotonic_ns(), begun_ns);
    // Waits for the pause, and for the compaction.
    db.compact().expect("compacted");
    let pauses = ended(&events, EventKind::Pause);
    assert_eq!(pauses.len(), 1);
    assert_eq!((pauses[0].start_ns, end_ns(&pauses[0])), (begun_ns, begun_ns + PAUSE_NS));
    for kind in [EventKind::Flush, EventKind::Compaction] {
        let work = ended(&events, kind);
        assert!(!work.is_empty() && work[0].start_ns >= begun_ns + PAUSE_NS, "{work:?}");
    }
    assert!(db.pause_background(PAUSE).expect("open"), "the first is over");
    db.close().expect("closed");
}

#[test]
fn a_pause_ends_without_work_and_at_its_exact_time() {
    let world = World::new(6, Arc::new(FaultyFs::new(6)));
    let (db, events) = open(&world.env, &small_options(SyncLevel::Os));
    let begun_ns = world.clock.monotonic_ns();
    assert!(db.pause_background(PAUSE).expect("open"));
    world.spawner.run_until_idle();
    assert!(ended(&events, EventKind::Pause).is_empty());
    // Noticed late.
    world.clock.advance(3 * PAUSE);
    world.spawner.run_until_idle();
    let pauses = ended(&events, EventKind::Pause);
    assert_eq!(pauses.iter().map(|pause| end_ns(pause)).collect::<Vec<_>>(), [begun_ns + PAUSE_NS]);
    db.close().expect("closed");
}

#[test]
fn a_close_ends_a_pause() {
    let world = World::new(7, Arc::new(FaultyFs::new(7)));
    let (db, events) = open(&world.env, &small_options(SyncLevel::Os));
    let begun_ns = world.clock.monotonic_ns();
    assert!(db.pause_background(Duration::from_secs(10)).expect("open"));
    db.close().expect("closed");
    assert!(world.clock.monotonic_ns() < begun_ns + 10_000_000_000, "it does not wait");
    assert_eq!(ended(&events, EventKind::Pause).len(), 1);
    let refused = db.pause_background(PAUSE).expect_err("a closed database has no background work");
    assert_eq!(refused.kind(), ErrorKind::Closed);
}

/// With threads: the step that would flush has begun when the pause begins, and prepares a log.
#[test]
fn a_memtable_that_is_sealed_during_a_pause_is_not_flushed_before_its_end() {
    for delay_ms in (0..20).step_by(4) {
        let fs = Arc::new(FaultyFs::new(9));
        let env = Env { fs: Arc::clone(&fs) as Arc<dyn Fs>, ..Env::posix() };
        fs.set_sync_delay(Duration::from_millis(10));
        let (db, events) = open(&env, &small_options(SyncLevel::Os));
        db.put(b"key", b"value", None).expect("written");
        std::thread::sleep(Duration::from_millis(delay_ms));
        assert!(db.pause_background(PAUSE).expect("open"));
        db.flush().expect("flushed");
        let (pauses, flushes) =
            (ended(&events, EventKind::Pause), ended(&events, EventKind::Flush));
        assert!(flushes[0].start_ns >= end_ns(&pauses[0]), "{delay_ms}: {flushes:?} {pauses:?}");
        db.close().expect("closed");
    }
}

/// With threads: the work is under way when the pause begins.
#[test]
fn a_compaction_that_runs_stops_in_the_middle() {
    const TRIALS_MAX: usize = 50;
    let env = Env { fs: Arc::new(FaultyFs::new(8)), ..Env::posix() };
    let options = Options {
        memtable_bytes: 4 << 20,
        table_bytes: 4 << 20,
        block_bytes: 512,
        ..small_options(SyncLevel::Os)
    };
    let (db, events) = open(&env, &options);
    for number in 0..40_000 {
        db.put(format!("{number:06}").as_bytes(), &[b'v'; 100], None).expect("written");
    }
    // One whose last entry has passed already ends during the pause.
    let has_stopped = (0..TRIALS_MAX).any(|_| {
        db.put(b"999999", b"so that there is something to compact", None).expect("written");
        db.flush().expect("flushed");
        let seen = events.last_number();
        let is_begin =
            |event: &Arc<Event>| event.kind == EventKind::Compaction && event.edge == Edge::Begin;
        std::thread::scope(|scope| {
            let compacting = scope.spawn(|| db.compact());
            while !events.after(seen, usize::MAX).iter().any(is_begin) && !compacting.is_finished()
            {
                std::thread::yield_now();
            }
            assert!(db.pause_background(Duration::from_millis(20)).expect("open"));
            compacting.join().expect("no panic").expect("compacted");
        });
        let pause = loop {
            let pauses = ended(&events, EventKind::Pause);
            match pauses.last() {
                Some(pause) if pause.number > seen => break Arc::clone(pause),
                _ => std::thread::yield_now(),
            }
        };
        let compactions = ended(&events, EventKind::Compaction);
        compactions.iter().any(|compaction| {
            compaction.start_ns < pause.start_ns && end_ns(compaction) >= end_ns(&pause)
        })
    });
    assert!(has_stopped, "no compaction of {TRIALS_MAX} was stopped");
    db.close().expect("closed");
}
