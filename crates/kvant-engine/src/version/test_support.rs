//! Tables and seeds for the tests of versions, compaction and iterators.

use super::{FileMeta, Version};
use crate::format::{FileNum, InternalKeyRef, SeqNum, ValueKind};
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;

impl<T> Version<T> {
    pub(crate) fn empty() -> Version<T> {
        Version::build(Default::default())
    }
}

/// A table of ten values in `first..=last`, written at sequence numbers from `num * 100` on.
pub(crate) fn table(num: u64, first: &str, last: &str) -> FileMeta {
    let seq = SeqNum(num * 100);
    FileMeta {
        num: FileNum(num),
        file_bytes: 1000,
        smallest: InternalKeyRef::new(first.as_bytes(), seq, ValueKind::Put).to_owned(),
        largest: InternalKeyRef::new(last.as_bytes(), seq, ValueKind::Put).to_owned(),
        seq_min: seq,
        seq_max: SeqNum(seq.0 + 9),
        entry_count: 10,
        tombstone_count: 0,
        raw_bytes: 2000,
        expiry: None,
    }
}

/// The generator of a random test. Its seed is printed; `KVANT_TEST_SEED` replays a failure.
pub(crate) fn test_rng() -> Rng {
    let seed = match std::env::var("KVANT_TEST_SEED") {
        Ok(text) => text.parse().expect("KVANT_TEST_SEED is a number"),
        Err(_) => entropy_seed(),
    };
    eprintln!("KVANT_TEST_SEED={seed}");
    Rng::new(seed)
}
