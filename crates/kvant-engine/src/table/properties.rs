//! Counts, ranges and sizes of a table (`docs/formats/table.md`, section 5).

use super::stored::{Malformed, Parsed};
use crate::format::{
    FileNum, InternalKey, InternalKeyRef, SeqNum, TRAILER_BYTES, ValueKind, split_expiry,
};
use crate::options::Compression;
use kvant_base::{limits, varint};

const CREATED_BY_BYTES_MAX: usize = 64;
/// Longest stored value: the longest user value, and its expiry.
const STORED_VALUE_BYTES_MAX: u64 = limits::VALUE_BYTES_MAX_LIMIT + 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableProperties {
    pub(crate) entry_count: u64,
    pub(crate) distinct_key_count: u64,
    pub(crate) tombstone_count: u64,
    pub(crate) expiring_count: u64,
    /// Earliest and latest expiry of the expiring entries; both 0 without any.
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
    /// The configured compression; blocks that it does not shrink are stored uncompressed.
    pub(crate) compression: Compression,
    pub(crate) smallest: InternalKey,
    pub(crate) largest: InternalKey,
    /// Program and version that wrote the table.
    pub(crate) created_by: String,
    /// The number of the file when it was written; unknown in version 1 of the format.
    pub(crate) file_num: Option<FileNum>,
}

impl TableProperties {
    pub(super) fn new(
        compression: Compression,
        created_by: &str,
        file_num: Option<FileNum>,
    ) -> TableProperties {
        TableProperties {
            seq_min: SeqNum::MAX,
            compression,
            created_by: created_by.to_string(),
            file_num,
            ..TableProperties::default()
        }
    }

    /// The numbers at the start of the encoding, in its order.
    fn numbers(&mut self) -> [&mut u64; 13] {
        [
            &mut self.entry_count,
            &mut self.distinct_key_count,
            &mut self.tombstone_count,
            &mut self.expiring_count,
            &mut self.expiry_ms_min,
            &mut self.expiry_ms_max,
            &mut self.seq_min.0,
            &mut self.seq_max.0,
            &mut self.key_bytes,
            &mut self.value_bytes,
            &mut self.raw_data_bytes,
            &mut self.data_block_count,
            &mut self.index_key_bytes,
        ]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.smallest.user_key.capacity()
            + self.largest.user_key.capacity()
            + self.created_by.capacity()
    }

    /// Counts the next entry. `distinct`: its user key differs from that of the entry before. The
    /// caller sets `largest` after the last entry.
    pub(super) fn count(
        &mut self,
        key: InternalKeyRef<'_>,
        value: &[u8],
        distinct: bool,
    ) -> Parsed<()> {
        let (kind, expiry_ms) = check_entry(key, value)?;
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
        for number in self.clone().numbers() {
            varint::put_u64(&mut out, *number);
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
        // A manifest that names such a table, as a repair would write one, cannot be read.
        let is_bound =
            |key: &InternalKey| !key.user_key.is_empty() && key.as_ref().kind().is_some();
        if ![&self.smallest, &self.largest].into_iter().all(is_bound) {
            return Err(Malformed("table is bounded by an empty key or one of an unknown kind"));
        }
        let consistent = self.entry_count > 0
            && (1..=self.entry_count).contains(&self.distinct_key_count)
            && (1..=self.entry_count).contains(&self.data_block_count)
            && self.tombstone_count.saturating_add(self.expiring_count) <= self.entry_count
            && self.expiry_ms_min <= self.expiry_ms_max
            && self.key_bytes.checked_add(self.value_bytes).is_some()
            && self.seq_min <= self.seq_max
            && self.seq_max <= SeqNum::MAX
            && self.smallest.as_ref() <= self.largest.as_ref();
        if consistent { Ok(()) } else { Err(Malformed("properties contradict each other")) }
    }
}

/// Kind and expiry of an entry, or why no table can hold it.
pub(super) fn check_entry(
    key: InternalKeyRef<'_>,
    value: &[u8],
) -> Parsed<(ValueKind, Option<u64>)> {
    if key.user_key.len() > limits::KEY_BYTES_MAX || value.len() as u64 > STORED_VALUE_BYTES_MAX {
        return Err(Malformed("key or value is longer than a table can hold"));
    }
    let kind = key.kind().ok_or(Malformed("entry has an unknown kind"))?;
    let (expiry_ms, _) =
        split_expiry(kind, value).ok_or(Malformed("expiring value is shorter than its expiry"))?;
    Ok((kind, expiry_ms))
}

fn take(input: &mut &[u8], version: u32) -> Option<TableProperties> {
    let mut properties = TableProperties::default();
    for number in properties.numbers() {
        *number = varint::take_u64(input)?;
    }
    properties.compression = Compression::from_byte(varint::take_bytes(input, 1)?[0])?;
    for key in [&mut properties.smallest, &mut properties.largest] {
        let encoded = take_sized(input, limits::KEY_BYTES_MAX, TRAILER_BYTES)?;
        *key = InternalKeyRef::decode(encoded)?.to_owned();
    }
    let created_by = take_sized(input, CREATED_BY_BYTES_MAX, 0)?;
    properties.created_by = String::from_utf8(created_by.to_vec()).ok()?;
    if version > 1 {
        properties.file_num = Some(FileNum(varint::take_u64(input)?));
    }
    Some(properties)
}

/// Takes a length of at most `bytes_max`, and so many bytes and `more_bytes`.
fn take_sized<'a>(input: &mut &'a [u8], bytes_max: usize, more_bytes: usize) -> Option<&'a [u8]> {
    let bytes = varint::take_u32(input)? as usize;
    if bytes > bytes_max {
        return None;
    }
    varint::take_bytes(input, bytes + more_bytes)
}

#[cfg(test)]
mod tests;
