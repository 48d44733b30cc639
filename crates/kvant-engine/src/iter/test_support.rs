//! An iterator over entries in memory, random entries, and a definition of visibility.

use crate::cursor::InternalIterator;
use crate::format::{InternalKey, InternalKeyRef, SeqNum, ValueKind, split_expiry};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An internal key and its stored value.
pub(super) type Entry = (InternalKey, Vec<u8>);

/// An iterator over entries.
pub(super) struct VecIter {
    entries: Arc<Vec<Entry>>,
    /// The cursor; `entries.len()` if not valid.
    index: usize,
    /// Reaching this entry fails.
    pub(super) fail_at: Option<usize>,
    /// Calls of `next` so far.
    pub(super) step_count: usize,
}

impl VecIter {
    pub(super) fn new(mut entries: Vec<Entry>) -> VecIter {
        entries.sort_by(|a, b| a.0.as_ref().cmp(&b.0.as_ref()));
        VecIter::over(Arc::new(entries))
    }

    /// `entries` as they are.
    pub(super) fn over(entries: Arc<Vec<Entry>>) -> VecIter {
        let index = entries.len();
        VecIter { entries, index, fail_at: None, step_count: 0 }
    }

    fn reach(&mut self, index: usize) -> Result<()> {
        if self.fail_at == Some(index) {
            self.index = self.entries.len();
            return Err(Error::new(ErrorKind::Corruption, "injected"));
        }
        self.index = index;
        Ok(())
    }
}

impl InternalIterator for VecIter {
    fn valid(&self) -> bool {
        self.index < self.entries.len()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.reach(0)
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.reach(self.entries.partition_point(|(key, _)| key.as_ref() < target))
    }

    fn next(&mut self) -> Result<()> {
        assert!(self.valid(), "next of an invalid iterator");
        self.step_count += 1;
        self.reach(self.index + 1)
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.entries[self.index].0.as_ref()
    }

    fn value(&self) -> &[u8] {
        &self.entries[self.index].1
    }
}

/// All entries from the cursor on.
pub(super) fn collect(iter: &mut dyn InternalIterator) -> Vec<Entry> {
    let mut entries = Vec::new();
    while iter.valid() {
        entries.push((iter.key().to_owned(), iter.value().to_vec()));
        iter.next().unwrap();
    }
    entries
}

pub(super) fn entry(key: &str, seq: u64, kind: ValueKind, stored: &[u8]) -> Entry {
    (InternalKeyRef::new(key.as_bytes(), SeqNum(seq), kind).to_owned(), stored.to_vec())
}

pub(super) fn put(key: &str, seq: u64) -> Entry {
    entry(key, seq, ValueKind::Put, format!("{key}@{seq}").as_bytes())
}

pub(super) fn delete(key: &str, seq: u64) -> Entry {
    entry(key, seq, ValueKind::Delete, b"")
}

pub(super) fn expiring(key: &str, seq: u64, expiry_ms: u64) -> Entry {
    let stored = [&expiry_ms.to_le_bytes()[..], b"x"].concat();
    entry(key, seq, ValueKind::PutExpiring, &stored)
}

/// `count` entries of all kinds and few keys, with sequence numbers from `from_seq` on and expiries
/// below 100.
pub(super) fn random_entries(rng: &mut Rng, count: u64, from_seq: u64) -> Vec<Entry> {
    let key_count = 1 + rng.below(12);
    let entries = (0..count).map(|index| {
        let key = format!("some/long/stem/{:02}", rng.below(key_count));
        let seq = from_seq + index;
        match rng.below(5) {
            0 => delete(&key, seq),
            1 => expiring(&key, seq, rng.below(100)),
            _ => put(&key, seq),
        }
    });
    entries.collect()
}

/// The records of `entries` visible at `visible_at` and `now_ms`, by definition.
pub(super) fn visible(
    entries: &[Entry],
    visible_at: u64,
    now_ms: u64,
) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut newest: BTreeMap<&[u8], &Entry> = BTreeMap::new();
    for entry in entries.iter().filter(|(key, _)| key.as_ref().seq().0 <= visible_at) {
        let best = newest.entry(&entry.0.user_key).or_insert(entry);
        if entry.0.trailer > best.0.trailer {
            *best = entry;
        }
    }
    let records = newest.into_iter().filter_map(|(user_key, (key, stored))| {
        let kind = key.as_ref().kind().expect("test entries have kinds");
        let (expiry_ms, value) = split_expiry(kind, stored).expect("test entries are well formed");
        let shown =
            kind != ValueKind::Delete && expiry_ms.is_none_or(|expiry_ms| expiry_ms > now_ms);
        shown.then(|| (user_key.to_vec(), value.to_vec()))
    });
    records.collect()
}
