//! redb. It has no log: a commit survives a crash of the process only if it, or a later one, is
//! synced. Each operation is a commit, and every ten-thousandth is synced, so that pages are
//! reused.

use crate::Failure;
use crate::data::Key;
use crate::engine::{Engine, Setup};
use redb::{Database, Durability, ReadableDatabase, TableDefinition, WriteTransaction};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
const COMMITS_PER_SYNC: u64 = 10_000;

struct Redb {
    database: Database,
    commit_count: AtomicU64,
}

pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
    std::fs::create_dir_all(dir)?;
    let mut builder = Database::builder();
    let database = builder.set_cache_size(setup.cache_bytes()).create(dir.join("records.redb"))?;
    let redb = Redb { database, commit_count: AtomicU64::new(0) };
    let transaction = redb.database.begin_write()?;
    transaction.open_table(RECORDS)?;
    transaction.commit()?;
    Ok(Box::new(redb))
}

impl Redb {
    fn transaction(&self) -> Result<WriteTransaction, Failure> {
        let mut transaction = self.database.begin_write()?;
        let count = self.commit_count.fetch_add(1, Ordering::Relaxed);
        if count % COMMITS_PER_SYNC != COMMITS_PER_SYNC - 1 {
            transaction.set_durability(Durability::None)?;
        }
        Ok(transaction)
    }
}

impl Engine for Redb {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        self.write_batch(&[(*key, value)])
    }

    fn delete(&self, key: &Key) -> Result<(), Failure> {
        let transaction = self.transaction()?;
        transaction.open_table(RECORDS)?.remove(key.as_slice())?;
        Ok(transaction.commit()?)
    }

    fn write_batch(&self, records: &[(Key, &[u8])]) -> Result<(), Failure> {
        let transaction = self.transaction()?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for (key, value) in records {
                table.insert(key.as_slice(), *value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &Key, take: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        let found = table.get(key.as_slice())?;
        Ok(found.map(|value| take(value.value())).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        limit: u64,
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Failure> {
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        let mut count = 0;
        for record in table.range(start..)?.take(limit as usize) {
            let (key, value) = record?;
            take(key.value(), value.value());
            count += 1;
        }
        Ok(count)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        // A synced commit makes the earlier ones durable.
        Ok(self.database.begin_write()?.commit()?)
    }
}
