//! Background work gives way to requests, unless something waits for it.

use crate::common::{World, put, small_options};
use kvant_engine::{Db, Options, SyncLevel};
use kvant_env::testing::FaultyFs;
use std::sync::Arc;

const VALUE_BYTES: usize = 1_000;
const PUTS: usize = 600;

fn fill(db: &Db) {
    for number in 0..PUTS {
        db.write(put(format!("{number:06}").as_bytes(), &[b'v'; VALUE_BYTES])).expect("written");
    }
}

fn options() -> Options {
    Options { memtable_bytes: 4 << 20, table_bytes: 1 << 20, ..small_options(SyncLevel::Os) }
}

/// How often a flush of all puts gives way.
fn give_ways_of_a_flush(options: &Options) -> u64 {
    let world = World::new(1, Arc::new(FaultyFs::new(1)));
    let db = world.open(options);
    fill(&db);
    let before = world.spawner.give_way_count();
    assert_eq!(db.stats().flushes.count, 0);
    db.flush().expect("flushed");
    assert_eq!(db.stats().flushes.count, 1);
    let count = world.spawner.give_way_count() - before;
    db.close().expect("closed");
    count
}

#[test]
fn a_flush_that_nobody_waits_for_gives_way_after_each_piece() {
    let pieces = (PUTS * VALUE_BYTES / (16 << 10)) as u64;
    let count = give_ways_of_a_flush(&options());
    assert!((pieces..=pieces * 5 / 4).contains(&count), "{count}, {pieces} pieces");
}

#[test]
fn a_flush_that_writers_will_wait_for_does_not_give_way() {
    // The only memtable that may be sealed: writers wait when the next one is full, and until half
    // of this one is written there is no room in sight.
    let options = Options { memtables_sealed_max: 1, ..options() };
    let (urgent, calm) = (give_ways_of_a_flush(&options), give_ways_of_a_flush(&self::options()));
    assert!(urgent > 0, "the second half is not urgent");
    assert!(3 * urgent < 2 * calm, "{urgent} of {calm}");
}

#[test]
fn a_compaction_gives_way_while_entries_pass_even_if_it_keeps_none() {
    let world = World::new(1, Arc::new(FaultyFs::new(1)));
    let db = world.open(&options());
    fill(&db);
    db.flush().expect("flushed");
    let before = world.spawner.give_way_count();
    for number in 0..PUTS {
        db.delete(format!("{number:06}").as_bytes()).expect("deleted");
    }
    db.compact().expect("compacted");
    let pieces = (PUTS * VALUE_BYTES / (16 << 10)) as u64;
    let count = world.spawner.give_way_count() - before;
    assert!(count >= pieces, "{count}, {pieces} pieces");
    db.close().expect("closed");
}
