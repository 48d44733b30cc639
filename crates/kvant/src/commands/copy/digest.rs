//! Digests of ranges of keys: whether two places have the same records, and where not.
//!
//! The first place is read once, and its keys are cut into ranges of an equal count of records: a
//! range ends after `range_records`, and when there are [`RANGES_MAX`] ranges, each two become one
//! of twice as many. The second place is read with these ranges. So both sides need memory for
//! [`RANGES_MAX`] digests and keys only, and a difference is looked for in few records.
//!
//! A digest is a count, the bytes, and the sum of a hash of 128 bits over each key and value: it
//! does not depend on the order.

use super::records::Record;
use twox_hash::XxHash3_128;

/// At most this many ranges, an even number.
const RANGES_MAX: usize = 1_024;
/// Records of the first ranges.
const RANGE_RECORDS_MIN: u64 = 256;

/// What a set of records is, with a probability that neither chance nor damage reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) count: u64,
    pub(super) bytes: u64,
    hash_sum: u128,
}

impl Digest {
    fn add(&mut self, other: Digest) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.hash_sum = self.hash_sum.wrapping_add(other.hash_sum);
    }
}

/// Ranges of keys: each ends where the next begins, and the last one has no end.
pub(super) struct Ranges {
    /// Where the first one begins.
    first: Vec<u8>,
    /// The least key of each range but the first.
    starts: Vec<Vec<u8>>,
    digests: Vec<Digest>,
    /// Records of a range of the first place; `None`: the ranges are given.
    range_records: Option<u64>,
    /// The range of the last record.
    current: usize,
    buffer: Vec<u8>,
}

impl Ranges {
    /// Ranges that follow from the records, which have no key before `first`.
    pub(super) fn new(first: &[u8]) -> Ranges {
        Ranges {
            first: first.to_vec(),
            starts: Vec::new(),
            digests: vec![Digest::default()],
            range_records: Some(RANGE_RECORDS_MIN),
            current: 0,
            buffer: Vec::new(),
        }
    }

    /// The same ranges, without any record.
    pub(super) fn emptied(&self) -> Ranges {
        Ranges {
            first: self.first.clone(),
            starts: self.starts.clone(),
            digests: vec![Digest::default(); self.digests.len()],
            range_records: None,
            current: 0,
            buffer: Vec::new(),
        }
    }

    /// Adds a record, whose key is behind those before.
    pub(super) fn add(&mut self, record: Record<'_>) {
        match self.range_records {
            Some(range_records) if self.digests[self.current].count == range_records => {
                self.begin(record.key);
            }
            Some(_) => {}
            None => {
                let is_behind = |start: &Vec<u8>| start.as_slice() <= record.key;
                while self.starts.get(self.current).is_some_and(is_behind) {
                    self.current += 1;
                }
            }
        }
        self.buffer.clear();
        // Without the length, the end of the key could be the start of the value.
        self.buffer.extend_from_slice(&(record.key.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(record.key);
        self.buffer.extend_from_slice(record.value);
        self.digests[self.current].add(Digest {
            count: 1,
            bytes: (record.key.len() + record.value.len()) as u64,
            hash_sum: XxHash3_128::oneshot(&self.buffer),
        });
    }

    fn begin(&mut self, start: &[u8]) {
        if self.digests.len() == RANGES_MAX {
            self.range_records = self.range_records.map(|records| 2 * records);
            self.digests = self.digests.chunks(2).map(sum).collect();
            // Of each pair the start of the first stays; the first range has none.
            self.starts = self.starts.iter().skip(1).step_by(2).cloned().collect();
            self.current = self.digests.len() - 1;
        }
        self.starts.push(start.to_vec());
        self.digests.push(Digest::default());
        self.current += 1;
    }

    /// Where the first range begins.
    pub(super) fn first(&self) -> &[u8] {
        &self.first
    }

    /// All records together.
    pub(super) fn total(&self) -> Digest {
        sum(&self.digests)
    }

    pub(super) fn count(&self) -> usize {
        self.digests.len()
    }

    /// Start and end of the ranges in which `other`, of the same ranges, has other records.
    pub(super) fn differing(&self, other: &Ranges) -> Vec<(&[u8], Option<&[u8]>)> {
        let pairs = self.digests.iter().zip(&other.digests).enumerate();
        let differing = pairs.filter(|(_, (one, other))| one != other);
        let start = |index: usize| self.starts.get(index).map(Vec::as_slice);
        differing
            .map(|(index, _)| {
                let before = index.checked_sub(1).and_then(start);
                (before.unwrap_or(&self.first), start(index))
            })
            .collect()
    }
}

fn sum(digests: &[Digest]) -> Digest {
    let mut sum = Digest::default();
    for digest in digests {
        sum.add(*digest);
    }
    sum
}

#[cfg(test)]
mod tests;
