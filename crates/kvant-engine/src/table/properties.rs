//! What a table knows about its contents (`docs/formats/table.md`, section 5).

use super::stored::{Malformed, Parsed};
use crate::format::{FileNum, InternalKey, InternalKeyRef, SeqNum, ValueKind, split_expiry};
use crate::options::Compression;
use kvant_base::{Error, Result, limits, varint};

/// Longest `created_by`.
const CREATED_BY_BYTES_MAX: usize = 64;

/// Counts, ranges and sizes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableProperties {
    pub(crate) entry_count: u64,
    pub(crate) distinct_key_count: u64,
    pub(crate) tombstone_count: u64,
    pub(crate) expiring_count: u64,
    /// Earliest and latest expiry of the expiring entries; both 0 when there are none.
    pub(crate) expiry_ms_min: u64,
    pub(crate) expiry_ms_max: u64,
    pub(crate) seq_min: SeqNum,
    pub(crate) seq_max: SeqNum,
    /// User keys and their trailers.
    pub(crate) key_bytes: u64,
    /// Values as stored.
    pub(crate) value_bytes: u64,
    /// Data blocks before compression.
    pub(crate) raw_data_bytes: u64,
    pub(crate) data_block_count: u64,
    pub(crate) index_key_bytes: u64,
    /// What the table was built with; blocks that do not shrink are stored as they are.
    pub(crate) compression: Compression,
    pub(crate) smallest: InternalKey,
    pub(crate) largest: InternalKey,
    /// Program and version that wrote the table.
    pub(crate) created_by: String,
    /// The number that the file was written under; version 1 of the format does not say.
    pub(crate) file_num: Option<FileNum>,
}

impl TableProperties {
    /// Properties of a table without entries.
    pub(super) fn new(
        compression: Compression,
        created_by: &str,
        file_num: Option<FileNum>,
    ) -> TableProperties {
        TableProperties {
            entry_count: 0,
            distinct_key_count: 0,
            tombstone_count: 0,
            expiring_count: 0,
            expiry_ms_min: 0,
            expiry_ms_max: 0,
            seq_min: SeqNum::MAX,
            seq_max: SeqNum(0),
            key_bytes: 0,
            value_bytes: 0,
            raw_data_bytes: 0,
            data_block_count: 0,
            index_key_bytes: 0,
            compression,
            smallest: InternalKey::default(),
            largest: InternalKey::default(),
            created_by: created_by.to_string(),
            file_num,
        }
    }

    /// Whether every entry expires at some time, so that the table can be dropped after
    /// `expiry_ms_max`.
    #[cfg(test)]
    pub(crate) fn all_expire(&self) -> bool {
        self.expiring_count == self.entry_count
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.smallest.user_key.capacity()
            + self.largest.user_key.capacity()
            + self.created_by.capacity()
    }

    /// Counts an entry, which must be after the one before. `distinct`: its user key differs from
    /// that one's. The caller sets `largest` when it knows the last entry.
    pub(super) fn count(
        &mut self,
        key: InternalKeyRef<'_>,
        value: &[u8],
        distinct: bool,
    ) -> Result<()> {
        let kind = key.kind().ok_or_else(|| Error::invalid("internal key has an unknown kind"))?;
        let (expiry_ms, _) = split_expiry(kind, value)
            .ok_or_else(|| Error::invalid("expiring value is shorter than its expiry"))?;
        if self.entry_count == 0 {
            self.smallest = key.to_owned();
        }
        if let Some(expiry_ms) = expiry_ms {
            let first = self.expiring_count == 0;
            self.expiry_ms_min = if first { expiry_ms } else { self.expiry_ms_min.min(expiry_ms) };
            self.expiry_ms_max = self.expiry_ms_max.max(expiry_ms);
            self.expiring_count += 1;
        }
        self.entry_count += 1;
        self.distinct_key_count += u64::from(distinct);
        self.tombstone_count += u64::from(kind == ValueKind::Delete);
        self.seq_min = self.seq_min.min(key.seq());
        self.seq_max = self.seq_max.max(key.seq());
        self.key_bytes += key.user_key.len() as u64 + 8;
        self.value_bytes += value.len() as u64;
        Ok(())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [
            self.entry_count,
            self.distinct_key_count,
            self.tombstone_count,
            self.expiring_count,
            self.expiry_ms_min,
            self.expiry_ms_max,
            self.seq_min.0,
            self.seq_max.0,
            self.key_bytes,
            self.value_bytes,
            self.raw_data_bytes,
            self.data_block_count,
            self.index_key_bytes,
        ] {
            varint::put_u64(&mut out, number);
        }
        out.push(self.compression as u8);
        for key in [&self.smallest, &self.largest] {
            varint::put_u64(&mut out, key.user_key.len() as u64);
            key.as_ref().encode_to(&mut out);
        }
        debug_assert!(self.created_by.len() <= CREATED_BY_BYTES_MAX);
        varint::put_u64(&mut out, self.created_by.len() as u64);
        out.extend_from_slice(self.created_by.as_bytes());
        if let Some(file_num) = self.file_num {
            varint::put_u64(&mut out, file_num.0);
        }
        out
    }

    /// Decodes the properties of a table of format `version`.
    pub(super) fn decode(payload: &[u8], version: u32) -> Parsed<TableProperties> {
        let mut input = payload;
        let properties = take(&mut input, version)
            .ok_or(Malformed("properties are cut short or out of range"))?;
        if !input.is_empty() {
            return Err(Malformed("properties have bytes left over"));
        }
        properties.check()?;
        Ok(properties)
    }

    fn check(&self) -> Parsed<()> {
        let consistent = self.entry_count > 0
            && (1..=self.entry_count).contains(&self.distinct_key_count)
            && (1..=self.entry_count).contains(&self.data_block_count)
            && self
                .tombstone_count
                .checked_add(self.expiring_count)
                .is_some_and(|sum| sum <= self.entry_count)
            && self.expiry_ms_min <= self.expiry_ms_max
            && self.seq_min <= self.seq_max
            && self.seq_max <= SeqNum::MAX
            && self.smallest.as_ref() <= self.largest.as_ref();
        if consistent { Ok(()) } else { Err(Malformed("properties contradict each other")) }
    }
}

fn take(input: &mut &[u8], version: u32) -> Option<TableProperties> {
    let mut number = || varint::take_u64(input);
    Some(TableProperties {
        entry_count: number()?,
        distinct_key_count: number()?,
        tombstone_count: number()?,
        expiring_count: number()?,
        expiry_ms_min: number()?,
        expiry_ms_max: number()?,
        seq_min: SeqNum(number()?),
        seq_max: SeqNum(number()?),
        key_bytes: number()?,
        value_bytes: number()?,
        raw_data_bytes: number()?,
        data_block_count: number()?,
        index_key_bytes: number()?,
        compression: match varint::take_bytes(input, 1)? {
            [0] => Compression::None,
            [1] => Compression::Lz4,
            [2] => Compression::Zstd,
            _ => return None,
        },
        smallest: take_key(input)?,
        largest: take_key(input)?,
        created_by: take_text(input)?,
        file_num: match version {
            1 => None,
            _ => Some(FileNum(varint::take_u64(input)?)),
        },
    })
}

fn take_key(input: &mut &[u8]) -> Option<InternalKey> {
    let user_key_bytes = varint::take_u32(input)? as usize;
    if user_key_bytes > limits::KEY_BYTES_MAX {
        return None;
    }
    let encoded = varint::take_bytes(input, user_key_bytes + crate::format::TRAILER_BYTES)?;
    Some(InternalKeyRef::decode(encoded)?.to_owned())
}

fn take_text(input: &mut &[u8]) -> Option<String> {
    let bytes = varint::take_u32(input)? as usize;
    if bytes > CREATED_BY_BYTES_MAX {
        return None;
    }
    String::from_utf8(varint::take_bytes(input, bytes)?.to_vec()).ok()
}
