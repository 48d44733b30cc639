//! Version edits: the difference between two versions, and its encoding in the manifest
//! (`docs/formats/manifest.md`, `edit`).

use super::FileMeta;
use crate::format::{FileNum, SeqNum};
use kvant_base::{limits, varint};

/// A change of the tree. Removals apply before additions; a table that moves is in both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionEdit {
    /// Above the number of every file. `None`: unchanged, as for the other counters.
    pub(crate) next_file_num: Option<FileNum>,
    /// Largest sequence number in any table.
    pub(crate) last_seq: Option<SeqNum>,
    /// Logs with lower numbers are not needed.
    pub(crate) oldest_wal: Option<FileNum>,
    /// Existing logs, and the bytes of each that are known to be synced.
    pub(crate) logs: Vec<(FileNum, u64)>,
    /// Level and number of the tables that leave a level.
    pub(crate) removed: Vec<(usize, FileNum)>,
    /// Level and description of the tables that enter a level.
    pub(crate) added: Vec<(usize, FileMeta)>,
}

const TAG_NEXT_FILE_NUM: u64 = 1;
const TAG_LAST_SEQ: u64 = 2;
const TAG_OLDEST_WAL: u64 = 3;
const TAG_REMOVED: u64 = 4;
const TAG_ADDED: u64 = 5;
const TAG_LOG: u64 = 6;

impl VersionEdit {
    pub(crate) fn adds(&self, num: FileNum) -> bool {
        self.added.iter().any(|(_, meta)| meta.num == num)
    }

    pub(super) fn encode_to(&self, out: &mut Vec<u8>) {
        let counters = [
            (TAG_NEXT_FILE_NUM, self.next_file_num.map(|num| num.0)),
            (TAG_LAST_SEQ, self.last_seq.map(|seq| seq.0)),
            (TAG_OLDEST_WAL, self.oldest_wal.map(|num| num.0)),
        ];
        for (tag, value) in counters {
            if let Some(value) = value {
                put_numbers(out, [tag, value]);
            }
        }
        for &(num, synced_bytes) in &self.logs {
            put_numbers(out, [TAG_LOG, num.0, synced_bytes]);
        }
        for &(level, num) in &self.removed {
            put_numbers(out, [TAG_REMOVED, level as u64, num.0]);
        }
        for (level, meta) in &self.added {
            put_numbers(out, [TAG_ADDED, *level as u64]);
            meta.encode_to(out);
        }
    }

    /// Decodes `payload`. The error says what is wrong.
    pub(super) fn decode(payload: &[u8]) -> Result<VersionEdit, String> {
        let mut input = payload;
        let mut edit = VersionEdit::default();
        while !input.is_empty() {
            let input = &mut input;
            match take_number(input)? {
                TAG_NEXT_FILE_NUM => {
                    set_once(&mut edit.next_file_num, FileNum(take_number(input)?))?
                }
                TAG_LAST_SEQ => set_once(&mut edit.last_seq, SeqNum(take_number(input)?))?,
                TAG_OLDEST_WAL => set_once(&mut edit.oldest_wal, FileNum(take_number(input)?))?,
                TAG_REMOVED => {
                    edit.removed.push((take_level(input)?, FileNum(take_number(input)?)))
                }
                TAG_ADDED => edit.added.push((take_level(input)?, FileMeta::decode(input)?)),
                TAG_LOG => edit.logs.push((FileNum(take_number(input)?), take_number(input)?)),
                tag => return Err(format!("an edit has a field with the unknown tag {tag}")),
            }
        }
        Ok(edit)
    }
}

fn put_numbers<const COUNT: usize>(out: &mut Vec<u8>, numbers: [u64; COUNT]) {
    numbers.into_iter().for_each(|number| varint::put_u64(out, number));
}

fn take_number(input: &mut &[u8]) -> Result<u64, String> {
    varint::take_u64(input)
        .ok_or_else(|| "an edit is cut short or has a malformed number".to_string())
}

fn take_level(input: &mut &[u8]) -> Result<usize, String> {
    let level = take_number(input)?;
    usize::try_from(level)
        .ok()
        .filter(|&level| level < limits::LEVELS)
        .ok_or_else(|| format!("an edit names level {level} of {}", limits::LEVELS))
}

fn set_once<N: std::fmt::Debug>(counter: &mut Option<N>, value: N) -> Result<(), String> {
    match counter.replace(value) {
        None => Ok(()),
        Some(first) => Err(format!("an edit sets a counter twice, first to {first:?}")),
    }
}
