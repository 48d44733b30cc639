//! Version edits: the difference between two versions, and how the manifest stores it
//! (`docs/formats/manifest.md`, `edit`).

use super::FileMeta;
use crate::format::{FileNum, SeqNum};
use kvant_base::{limits, varint};

/// A change of the tree. Removals come into force before additions; a table that moves is in both
/// lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionEdit {
    /// No file has this number or a higher one. `None`: unchanged, as for the other counters.
    pub(crate) next_file_num: Option<FileNum>,
    /// Largest sequence number in any table.
    pub(crate) last_seq: Option<SeqNum>,
    /// WALs with lower numbers are not needed.
    pub(crate) oldest_wal: Option<FileNum>,
    /// Logs that exist, each with how many of its bytes are known to be synced.
    pub(crate) logs: Vec<(FileNum, u64)>,
    /// Level and number of the tables that leave the tree or their level.
    pub(crate) removed: Vec<(usize, FileNum)>,
    /// Tables that enter the tree or a level.
    pub(crate) added: Vec<(usize, FileMeta)>,
}

const TAG_NEXT_FILE_NUM: u64 = 1;
const TAG_LAST_SEQ: u64 = 2;
const TAG_OLDEST_WAL: u64 = 3;
const TAG_REMOVED: u64 = 4;
const TAG_ADDED: u64 = 5;
const TAG_LOG: u64 = 6;

impl VersionEdit {
    /// Whether the table is added by this edit (removed and added: it moves).
    pub(crate) fn adds(&self, num: FileNum) -> bool {
        self.added.iter().any(|(_, meta)| meta.num == num)
    }

    /// Appends the stored form to `out`.
    pub(super) fn encode_to(&self, out: &mut Vec<u8>) {
        let counters = [
            (TAG_NEXT_FILE_NUM, self.next_file_num.map(|num| num.0)),
            (TAG_LAST_SEQ, self.last_seq.map(|seq| seq.0)),
            (TAG_OLDEST_WAL, self.oldest_wal.map(|num| num.0)),
        ];
        for (tag, value) in counters {
            if let Some(value) = value {
                varint::put_u64(out, tag);
                varint::put_u64(out, value);
            }
        }
        for &(num, synced_bytes) in &self.logs {
            varint::put_u64(out, TAG_LOG);
            varint::put_u64(out, num.0);
            varint::put_u64(out, synced_bytes);
        }
        for &(level, num) in &self.removed {
            varint::put_u64(out, TAG_REMOVED);
            varint::put_u64(out, level as u64);
            varint::put_u64(out, num.0);
        }
        for (level, meta) in &self.added {
            varint::put_u64(out, TAG_ADDED);
            varint::put_u64(out, *level as u64);
            meta.encode_to(out);
        }
    }

    /// Reads an edit that fills `payload`; the error says what is wrong.
    pub(super) fn decode(payload: &[u8]) -> Result<VersionEdit, String> {
        let mut input = payload;
        let mut edit = VersionEdit::default();
        while !input.is_empty() {
            let tag = take_number(&mut input)?;
            match tag {
                TAG_NEXT_FILE_NUM => {
                    set_once(&mut edit.next_file_num, FileNum(take_number(&mut input)?))?
                }
                TAG_LAST_SEQ => set_once(&mut edit.last_seq, SeqNum(take_number(&mut input)?))?,
                TAG_OLDEST_WAL => {
                    set_once(&mut edit.oldest_wal, FileNum(take_number(&mut input)?))?
                }
                TAG_REMOVED => {
                    let level = take_level(&mut input)?;
                    edit.removed.push((level, FileNum(take_number(&mut input)?)));
                }
                TAG_ADDED => {
                    let level = take_level(&mut input)?;
                    edit.added.push((level, FileMeta::decode(&mut input)?));
                }
                TAG_LOG => {
                    let num = FileNum(take_number(&mut input)?);
                    edit.logs.push((num, take_number(&mut input)?));
                }
                _ => return Err(format!("an edit has a field with the unknown tag {tag}")),
            }
        }
        Ok(edit)
    }
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
