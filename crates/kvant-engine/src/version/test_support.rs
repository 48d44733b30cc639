//! Tables and seeds for the tests of versions, compaction and iterators.

use super::FileMeta;
use crate::format::{FileNum, InternalKeyRef, SeqNum, ValueKind};
use kvant_env::rng::{self, Rng};

/// A table of ten lasting values in `first..=last`, written at sequence numbers `num * 100` and up.
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

/// A generator for a random test: its seed is printed, and taken from `KVANT_TEST_SEED` to replay a
/// failure.
pub(crate) fn test_rng() -> Rng {
    let seed = match std::env::var("KVANT_TEST_SEED") {
        Ok(text) => text.parse().expect("KVANT_TEST_SEED is a number"),
        Err(_) => rng::entropy_seed(),
    };
    eprintln!("KVANT_TEST_SEED={seed}");
    Rng::new(seed)
}
