//! LMDB without fsyncs, which survives a crash of the process. A transaction for each operation.

use crate::Failure;
use crate::data::Key;
use crate::engine::{Engine, Setup};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use std::ops::Bound;
use std::path::Path;

/// Address space, the largest size of the database.
const MAP_BYTES: usize = 64 << 30;

struct Lmdb {
    env: Env,
    records: Database<Bytes, Bytes>,
}

pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
    std::fs::create_dir_all(dir)?;
    let mut flags = EnvFlags::NO_SYNC;
    // As LMDB advises for random reads of more data than memory.
    flags.set(EnvFlags::NO_READ_AHEAD, setup.reads_from_disk);
    // SAFETY: one process opens the directory, once; without fsyncs only a crash of the operating
    // system can damage it.
    let env = unsafe { EnvOpenOptions::new().map_size(MAP_BYTES).flags(flags).open(dir)? };
    let mut transaction = env.write_txn()?;
    let records = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, records }))
}

impl Engine for Lmdb {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        self.records.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn delete(&self, key: &Key) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        self.records.delete(&mut transaction, key)?;
        Ok(transaction.commit()?)
    }

    fn write_batch(&self, records: &[(Key, &[u8])]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in records {
            self.records.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &Key, take: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let transaction = self.env.read_txn()?;
        let found = self.records.get(&transaction, key)?;
        Ok(found.map(take).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        limit: u64,
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Failure> {
        let transaction = self.env.read_txn()?;
        let mut count = 0;
        let range = (Bound::Included(start), Bound::Unbounded);
        for record in self.records.range(&transaction, &range)?.take(limit as usize) {
            let (key, value) = record?;
            take(key, value);
            count += 1;
        }
        Ok(count)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.env.force_sync()?)
    }
}
