//! Kvant's engine with the settings that the server derives from `--memory`.

use crate::Failure;
use crate::alone::engine;
use crate::data::Key;
use crate::engine::{Engine, Setup};
use kvant_engine::{CompactionGoal, Db, Options, WriteBatch};
use std::path::Path;

struct Kvant(Db);

pub(crate) fn open(
    dir: &Path,
    setup: &Setup,
    goal: CompactionGoal,
) -> Result<Box<dyn Engine>, Failure> {
    let mut options = Options::for_goal(setup.memory_bytes, goal);
    options.direct_reads = setup.reads_from_disk;
    Ok(Box::new(Kvant(engine::open(dir, options)?)))
}

impl Engine for Kvant {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        Ok(self.0.put(key, value, None)?)
    }

    fn delete(&self, key: &Key) -> Result<(), Failure> {
        Ok(self.0.delete(key)?)
    }

    fn write_batch(&self, records: &[(Key, &[u8])]) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        for (key, value) in records {
            batch.put(key, value, None);
        }
        Ok(self.0.write(batch)?)
    }

    fn get(&self, key: &Key, take: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let found = self.0.get(key)?;
        Ok(found.map(|value| take(&value)).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        limit: u64,
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Failure> {
        let mut range = self.0.range(start, None)?;
        let mut count = 0;
        while count < limit
            && let Some(record) = range.next()?
        {
            take(record.key, record.value);
            count += 1;
        }
        Ok(count)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    fn settle(&self) -> Result<(), Failure> {
        engine::settle(&self.0).map(drop)
    }

    fn written_bytes(&self) -> u64 {
        let stats = self.0.stats();
        stats.wal.written_bytes + stats.flushes.written_bytes + stats.compactions.written_bytes
    }

    fn stats(&self) -> serde_json::Value {
        serde_json::to_value(self.0.stats()).unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
