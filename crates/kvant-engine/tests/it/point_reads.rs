//! What point reads touch.

use crate::common::{World, small_options};
use kvant_engine::{Db, ReadTrace, SyncLevel};
use kvant_env::memory::MemoryFs;
use std::sync::Arc;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// One table of 100 records.
fn flushed(world: &World) -> Db {
    let db = world.open(&small_options(SyncLevel::Os));
    for number in 0..100 {
        db.put(&key(number), b"value", None).expect("written");
    }
    db.flush().expect("flushed");
    db
}

fn traced(db: &Db, key: &[u8]) -> ReadTrace {
    let mut trace = ReadTrace::default();
    db.get_traced(key, &mut trace).expect("read");
    trace
}

#[test]
fn a_trace_tells_tables_and_blocks_and_which_were_not_in_the_cache() {
    let world = World::new(1, Arc::new(MemoryFs::new()));
    let db = flushed(&world);
    let before = db.stats().reads;
    let cold = traced(&db, &key(50));
    assert_eq!(
        (cold.table_count, cold.block_count, cold.block_read_count),
        (1, 1, 1)
    );
    let reads = db.stats().reads;
    assert_eq!(
        cold.block_read_bytes,
        reads.disk_read_bytes - before.disk_read_bytes
    );
    assert_eq!(reads.present_block_fetch_count, 1);

    let warm = traced(&db, &key(50));
    assert_eq!(
        (warm.table_count, warm.block_count, warm.block_read_count),
        (1, 1, 0)
    );
    assert_eq!(warm.block_read_bytes, 0);

    db.put(&key(50), b"newer", None).expect("written");
    assert_eq!(
        traced(&db, &key(50)),
        ReadTrace::default(),
        "it is in the memtable"
    );

    let mut both = cold;
    db.get_traced(&key(51), &mut both).expect("read");
    assert_eq!(both.table_count, 2, "reads are added up");
    assert_eq!(db.stats().reads.present_block_fetch_count, 3);
}

#[test]
fn a_filter_keeps_absent_keys_out_of_the_trace() {
    let world = World::new(1, Arc::new(MemoryFs::new()));
    let db = flushed(&world);
    let mut trace = ReadTrace::default();
    for number in 0..1_000 {
        let absent = format!("key{number:05}x");
        db.get_traced(absent.as_bytes(), &mut trace).expect("read");
    }
    let reads = db.stats().reads;
    let let_through = reads.filter_probe_count - reads.filter_negative_count;
    assert_eq!(u64::from(trace.table_count), let_through);
    assert_eq!(u64::from(trace.block_count), reads.absent_block_fetch_count);
    assert!(trace.table_count < 100, "{trace:?}");
}
