//! The description of a table in the manifest, and its encoding (`docs/formats/manifest.md`,
//! `file_meta`).

use crate::format::{FileNum, InternalKey, InternalKeyRef, SeqNum, TRAILER_BYTES};
use crate::table::TableProperties;
use kvant_base::{limits, varint};

/// Count and expiries of the expiring entries of a table, in milliseconds since 1970 by wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpirySummary {
    /// At least one.
    pub(crate) expiring_count: u64,
    pub(crate) min_ms: u64,
    pub(crate) max_ms: u64,
}

/// Describes one table of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileMeta {
    pub(crate) num: FileNum,
    pub(crate) file_bytes: u64,
    pub(crate) smallest: InternalKey,
    pub(crate) largest: InternalKey,
    pub(crate) seq_min: SeqNum,
    pub(crate) seq_max: SeqNum,
    /// Entries, tombstones included.
    pub(crate) entry_count: u64,
    pub(crate) tombstone_count: u64,
    /// User keys and values before any compression.
    pub(crate) raw_bytes: u64,
    /// `None` when no entry expires.
    pub(crate) expiry: Option<ExpirySummary>,
}

impl FileMeta {
    /// Describes a table of `file_bytes` with these properties.
    pub(crate) fn of_table(
        num: FileNum,
        properties: &TableProperties,
        file_bytes: u64,
    ) -> FileMeta {
        FileMeta {
            num,
            file_bytes,
            smallest: properties.smallest.clone(),
            largest: properties.largest.clone(),
            seq_min: properties.seq_min,
            seq_max: properties.seq_max,
            entry_count: properties.entry_count,
            tombstone_count: properties.tombstone_count,
            // Properties whose sum is too large are not decoded.
            raw_bytes: properties.key_bytes + properties.value_bytes,
            expiry: (properties.expiring_count > 0).then_some(ExpirySummary {
                expiring_count: properties.expiring_count,
                min_ms: properties.expiry_ms_min,
                max_ms: properties.expiry_ms_max,
            }),
        }
    }

    /// What an edit that replaces a table like this takes in the manifest, about.
    pub(crate) fn edit_bytes(&self) -> u64 {
        const NUMBERS_BYTES: usize = 96;
        (self.smallest.user_key.len() + self.largest.user_key.len() + NUMBERS_BYTES) as u64
    }

    /// The first difference between this description and a table of `file_bytes` with `properties`.
    pub(crate) fn disagreement(
        &self,
        properties: &TableProperties,
        file_bytes: u64,
    ) -> Option<String> {
        if let Some(num) = properties.file_num.filter(|&num| num != self.num) {
            return Some(format!("the file holds table {}, not table {}", num.0, self.num.0));
        }
        let found = FileMeta::of_table(self.num, properties, file_bytes);
        let same = [
            ("length", found.file_bytes == self.file_bytes),
            ("smallest key", found.smallest == self.smallest),
            ("largest key", found.largest == self.largest),
            (
                "range of sequence numbers",
                (found.seq_min, found.seq_max) == (self.seq_min, self.seq_max),
            ),
            ("number of entries", found.entry_count == self.entry_count),
            ("number of tombstones", found.tombstone_count == self.tombstone_count),
            ("size of keys and values", found.raw_bytes == self.raw_bytes),
            ("range of expiries", found.expiry == self.expiry),
        ];
        let (what, _) = same.into_iter().find(|(_, same)| !same)?;
        Some(format!("the table is not the one that the manifest describes: its {what} differs"))
    }

    pub(crate) fn expiring_count(&self) -> u64 {
        self.expiry.map_or(0, |expiry| expiry.expiring_count)
    }

    /// Whether `user_key` is within the range of the table.
    #[inline]
    pub(crate) fn covers(&self, user_key: &[u8]) -> bool {
        self.smallest.user_key.as_slice() <= user_key
            && user_key <= self.largest.user_key.as_slice()
    }

    /// Whether every entry has expired by `now_ms`. Tombstones and values without expiry never do.
    pub(crate) fn all_expired(&self, now_ms: u64) -> bool {
        self.expiry.is_some_and(|expiry| {
            expiry.expiring_count == self.entry_count && expiry.max_ms <= now_ms
        })
    }

    /// Whether the range of the table and `first..=last` overlap.
    pub(crate) fn overlaps(&self, first: &[u8], last: &[u8]) -> bool {
        self.smallest.user_key.as_slice() <= last && first <= self.largest.user_key.as_slice()
    }

    /// Why this description is invalid, if it is.
    pub(crate) fn problem(&self) -> Option<String> {
        let num = self.num.0;
        for key in [&self.smallest, &self.largest] {
            let (bytes, trailer) = (key.user_key.len(), key.trailer);
            if !(1..=limits::KEY_BYTES_MAX).contains(&bytes) || key.as_ref().kind().is_none() {
                let problem = "is bounded by a bad key";
                return Some(format!(
                    "table {num} {problem} of {bytes} bytes, trailer {trailer:#x}"
                ));
            }
        }
        let holds = num > 0
            && self.file_bytes > 0
            && self.smallest.as_ref() <= self.largest.as_ref()
            && self.seq_min <= self.seq_max
            && self.seq_max <= SeqNum::MAX
            && self.entry_count >= 1
            && self.tombstone_count.saturating_add(self.expiring_count()) <= self.entry_count
            && self
                .expiry
                .is_none_or(|expiry| expiry.expiring_count > 0 && expiry.min_ms <= expiry.max_ms);
        (!holds).then(|| format!("the description of table {num} contradicts itself: {self:?}"))
    }

    pub(super) fn encode_to(&self, out: &mut Vec<u8>) {
        debug_assert_eq!(self.problem(), None);
        varint::put_u64(out, self.num.0);
        varint::put_u64(out, self.file_bytes);
        for key in [&self.smallest, &self.largest] {
            varint::put_u64(out, (key.user_key.len() + TRAILER_BYTES) as u64);
            key.as_ref().encode_to(out);
        }
        for number in
            [self.seq_min.0, self.seq_max.0, self.entry_count, self.tombstone_count, self.raw_bytes]
        {
            varint::put_u64(out, number);
        }
        varint::put_u64(out, self.expiring_count());
        if let Some(expiry) = self.expiry {
            varint::put_u64(out, expiry.min_ms);
            varint::put_u64(out, expiry.max_ms);
        }
    }

    /// Takes a description from `input`. The error says what is wrong.
    pub(super) fn decode(input: &mut &[u8]) -> Result<FileMeta, String> {
        let meta =
            Self::decode_fields(input).ok_or("a table's description is cut short or malformed")?;
        match meta.problem() {
            Some(problem) => Err(problem),
            None => Ok(meta),
        }
    }

    fn decode_fields(input: &mut &[u8]) -> Option<FileMeta> {
        Some(FileMeta {
            num: FileNum(varint::take_u64(input)?),
            file_bytes: varint::take_u64(input)?,
            smallest: decode_key(input)?,
            largest: decode_key(input)?,
            seq_min: SeqNum(varint::take_u64(input)?),
            seq_max: SeqNum(varint::take_u64(input)?),
            entry_count: varint::take_u64(input)?,
            tombstone_count: varint::take_u64(input)?,
            raw_bytes: varint::take_u64(input)?,
            expiry: match varint::take_u64(input)? {
                0 => None,
                expiring_count => Some(ExpirySummary {
                    expiring_count,
                    min_ms: varint::take_u64(input)?,
                    max_ms: varint::take_u64(input)?,
                }),
            },
        })
    }
}

fn decode_key(input: &mut &[u8]) -> Option<InternalKey> {
    let bytes = usize::try_from(varint::take_u64(input)?).ok()?;
    Some(InternalKeyRef::decode(varint::take_bytes(input, bytes)?)?.to_owned())
}
