//! Data blocks per point read, from cache or disk, by the engine's counters, on a tree as left by
//! the writes.

use super::engine::{open, settle};
use super::figures::{plain, share, targeted};
use super::records::{self, Records};
use super::scratch::Scratch;
use super::{Failure, Settings};
use kvant_engine::{Db, Options, WriteBatch};
use kvant_env::rng::Rng;
use std::time::Instant;

const KEYS: u64 = 10_000_000;
const READS: u64 = 1_000_000;
const MEMORY_BYTES: u64 = 1 << 30;
const VALUE_BYTES: u64 = 12;
const PUTS_PER_BATCH: usize = 100;

pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let scratch = Scratch::new(&settings.data_dir)?;
    let key_count = settings.scaled(KEYS);
    let records = Records::new(settings.seed, VALUE_BYTES, VALUE_BYTES);
    let db = open(&scratch.path().join("data"), Options::for_memory(MEMORY_BYTES))?;

    let start = Instant::now();
    fill(&db, &records, key_count)?;
    plain("keys", key_count as f64, "keys");
    plain("fill_us_per_key", start.elapsed().as_secs_f64() * 1e6 / key_count as f64, "us");

    let read_count = settings.scaled(READS);
    measure(&db, &records, "at_once", key_count, read_count, settings.seed)?;
    db.flush()?;
    let stats = settle(&db)?;
    for level in stats.levels.iter().filter(|level| level.table_count > 0) {
        plain(&format!("level_{}_tables", level.level), level.table_count as f64, "tables");
    }
    measure(&db, &records, "settled", key_count, read_count, settings.seed)?;
    db.close()?;
    Ok(())
}

fn fill(db: &Db, records: &Records, key_count: u64) -> Result<(), Failure> {
    let mut batch = WriteBatch::new();
    for number in records::shuffled(key_count) {
        batch.put(&records::key(number), records.value(number, 0), None);
        if batch.len() == PUTS_PER_BATCH {
            db.write(std::mem::take(&mut batch))?;
        }
    }
    Ok(db.write(batch)?)
}

fn measure(
    db: &Db,
    records: &Records,
    when: &str,
    key_count: u64,
    read_count: u64,
    seed: u64,
) -> Result<(), Failure> {
    let mut rng = Rng::new(seed);
    let before = db.stats().reads;
    let start = Instant::now();
    for _ in 0..read_count {
        let number = rng.below(key_count);
        if db.get(&records::absent_key(number))?.is_some() {
            return Err(
                format!("a key after record {number} is there, which was never written").into()
            );
        }
    }
    let absent_us = start.elapsed().as_secs_f64() * 1e6 / read_count as f64;

    let start = Instant::now();
    for _ in 0..read_count {
        let number = rng.below(key_count);
        if db.get(&records::key(number))?.as_deref() != Some(records.value(number, 0)) {
            return Err(format!("record {number} is missing or wrong").into());
        }
    }
    let present_us = start.elapsed().as_secs_f64() * 1e6 / read_count as f64;

    let after = db.stats().reads;
    let absent_fetches = after.absent_block_fetch_count - before.absent_block_fetch_count;
    let absent = after.absent_count - before.absent_count;
    let present_fetches = after.present_block_fetch_count - before.present_block_fetch_count;
    let present = after.present_from_table_count - before.present_from_table_count;
    targeted(
        &format!("absent_fetch_share_{when}"),
        share(absent_fetches, absent),
        "blocks/read",
        "< 0.01",
    );
    targeted(
        &format!("present_fetches_{when}"),
        share(present_fetches, present),
        "blocks/read",
        "<= 1.1",
    );
    plain(&format!("absent_read_{when}"), absent_us, "us");
    plain(&format!("present_read_{when}"), present_us, "us");
    Ok(())
}
