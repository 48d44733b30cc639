//! Space amplification: every key is overwritten several times at random, then compaction runs
//! until it is idle.

use super::engine::{open, settle};
use super::figures::{mib, plain, share, targeted};
use super::records::{self, KEY_BYTES, Records};
use super::scratch::Scratch;
use super::{Failure, Settings};
use kvant_engine::{Options, WriteBatch};
use kvant_env::rng::Rng;

const KEYS: u64 = 500_000;
const OVERWRITES_PER_KEY: u64 = 4;
const VALUE_BYTES: u64 = 400;
const MEMORY_BYTES: u64 = 64 << 20;
const PUTS_PER_BATCH: u64 = 20;

pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let scratch = Scratch::new(&settings.data_dir)?;
    let key_count = settings.scaled(KEYS);
    let records = Records::new(settings.seed, VALUE_BYTES, VALUE_BYTES);
    let db = open(&scratch.path().join("data"), Options::for_memory(MEMORY_BYTES))?;

    let mut versions = vec![0u8; key_count as usize];
    let mut batch = WriteBatch::new();
    let mut put = |number: u64, version: u8| {
        batch.put(&records::key(number), records.value(number, version.into()), None);
        if batch.len() as u64 == PUTS_PER_BATCH {
            db.write(std::mem::take(&mut batch))
        } else {
            Ok(())
        }
    };
    for number in records::shuffled(key_count) {
        put(number, 0)?;
    }
    let mut rng = Rng::new(settings.seed);
    for _ in 0..key_count * OVERWRITES_PER_KEY {
        let number = rng.below(key_count);
        let version = &mut versions[number as usize];
        *version = version.wrapping_add(1);
        put(number, *version)?;
    }
    db.write(batch)?;
    db.flush()?;
    let stats = settle(&db)?;

    let logical_bytes = key_count * (KEY_BYTES as u64 + VALUE_BYTES);
    let live_bytes = stats.space.live_bytes;
    plain("logical", mib(logical_bytes), "MiB");
    plain("live", mib(live_bytes), "MiB");
    targeted("space_amplification", share(live_bytes, logical_bytes), "live/logical", "<= 1.3");
    plain("write_amplification", stats.writes.amplification, "written/user");

    check(&db, &records, &versions)?;
    // The size of the same records without overhead.
    db.compact()?;
    let compacted_bytes = settle(&db)?.space.live_bytes;
    plain("live_compacted", mib(compacted_bytes), "MiB");
    targeted(
        "space_amplification_over_compacted",
        share(live_bytes, compacted_bytes),
        "live/compacted",
        "<= 1.3",
    );
    db.close()?;
    Ok(())
}

/// Checks that every key has its newest value and that there are no others.
fn check(db: &kvant_engine::Db, records: &Records, versions: &[u8]) -> Result<(), Failure> {
    let mut range = db.range(b"", None)?;
    let mut count = 0;
    while let Some(record) = range.next()? {
        let is_right = record.key == records::key(count)
            && versions
                .get(count as usize)
                .is_some_and(|&version| record.value == records.value(count, version.into()));
        if !is_right {
            return Err(format!("record {count} is missing or wrong").into());
        }
        count += 1;
    }
    if count == versions.len() as u64 {
        Ok(())
    } else {
        Err(format!("{count} of {} records are there", versions.len()).into())
    }
}
