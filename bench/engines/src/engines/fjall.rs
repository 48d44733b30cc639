//! fjall with its defaults, which are Bloom filters of at least 10 bits per key and LZ4 from the
//! third level on.

use crate::Failure;
use crate::data::Key;
use crate::engine::{Engine, Setup};
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use std::path::Path;

struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
    let database = Database::builder(dir).cache_size(setup.cache_bytes() as u64).open()?;
    let write_buffer_bytes = setup.write_buffer_bytes() as u64;
    let keyspace = database.keyspace("records", || {
        KeyspaceCreateOptions::default().max_memtable_size(write_buffer_bytes)
    })?;
    Ok(Box::new(Fjall { database, keyspace }))
}

impl Engine for Fjall {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        Ok(self.keyspace.insert(key.as_slice(), value)?)
    }

    fn delete(&self, key: &Key) -> Result<(), Failure> {
        Ok(self.keyspace.remove(key.as_slice())?)
    }

    fn write_batch(&self, records: &[(Key, &[u8])]) -> Result<(), Failure> {
        let mut batch = self.database.batch();
        for (key, value) in records {
            batch.insert(&self.keyspace, key.as_slice(), *value);
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: &Key, take: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let found = self.keyspace.get(key)?;
        Ok(found.map(|value| take(&value)).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        limit: u64,
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Failure> {
        let mut count = 0;
        for record in self.keyspace.range(start..).take(limit as usize) {
            let (key, value) = record.into_inner()?;
            take(&key, &value);
            count += 1;
        }
        Ok(count)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.keyspace.rotate_memtable_and_wait()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
