//! Reads several log files as one log: "Several files" in `docs/formats/wal.md`.

use super::layout::FILE_HEADER_BYTES;
use super::reader::{WalEnd, WalEndReason, WalReader, WalRecord};
use super::scan::Window;
use crate::format::{FileKind, FileNum, SeqNum, file_path};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{File, Fs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecoveredWal {
    pub(crate) file_num: FileNum,
    pub(crate) record_count: u64,
    /// So far the log is known to be synced.
    pub(crate) synced_bytes: u64,
    pub(crate) end: WalEnd,
}

/// Calls `visit` with every valid record of the logs `nums` (ascending) and returns how each file
/// ended.
///
/// The visited records are a prefix of what was written: a log is replayed only if it continues
/// exactly where the logs before it end, and is discarded otherwise. `known` holds the synced bytes
/// of each log according to the manifest. `first_seq` is the first sequence number of the first
/// record (`None`: any).
///
/// # Errors
/// `Corruption` when something known to be synced is bad or missing, when a log between two others
/// is missing, or when sequence numbers do not continue; `Unsupported`; `Io`; errors of `visit`.
pub(crate) fn recover(
    fs: &dyn Fs,
    dir: &Path,
    nums: &[FileNum],
    known: &BTreeMap<FileNum, u64>,
    first_seq: Option<SeqNum>,
    visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
) -> Result<Vec<RecoveredWal>> {
    let mut chain = LogChain::new(fs, dir, nums, known, first_seq, false)?;
    chain.replay(visit)?;
    Ok(chain.recovered)
}

pub(crate) struct Salvaged {
    /// Valid records with operations.
    pub(crate) record_count: u64,
    /// The damage at which replay ended; `None`: everything was read.
    pub(crate) damage: Option<Error>,
    /// Operations after the damage, as far as they can be counted.
    pub(crate) lost_op_count: u64,
}

/// As [`recover`], but damage ends the replay instead of being an error.
///
/// # Errors
/// `Unsupported`; `Io`; errors of `visit`.
pub(crate) fn salvage(
    fs: &dyn Fs,
    dir: &Path,
    nums: &[FileNum],
    known: &BTreeMap<FileNum, u64>,
    first_seq: Option<SeqNum>,
    visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
) -> Result<Salvaged> {
    let mut chain = LogChain::new(fs, dir, nums, known, first_seq, true)?;
    let mut salvaged = Salvaged { record_count: 0, damage: None, lost_op_count: 0 };
    let replayed = chain.replay(&mut |num, record| {
        visit(num, record)?;
        salvaged.record_count += u64::from(record.op_count > 0);
        Ok(())
    });
    match replayed {
        Err(error) if error.kind() == ErrorKind::Corruption => {
            salvaged.lost_op_count = chain.lost_op_count(error.offset_bytes().unwrap_or(0))?;
            salvaged.damage = Some(error);
        }
        other => other?,
    }
    Ok(salvaged)
}

struct LogChain<'a> {
    fs: &'a dyn Fs,
    dir: &'a Path,
    nums: &'a [FileNum],
    /// How far each log is known to be synced.
    synced_bytes: Vec<u64>,
    recovered: Vec<RecoveredWal>,
    /// First sequence number of the next record; `None` before the first one if any is accepted.
    next_seq: Option<SeqNum>,
}

impl<'a> LogChain<'a> {
    fn new(
        fs: &'a dyn Fs,
        dir: &'a Path,
        nums: &'a [FileNum],
        known: &BTreeMap<FileNum, u64>,
        first_seq: Option<SeqNum>,
        is_salvage: bool,
    ) -> Result<LogChain<'a>> {
        let synced_bytes = nums.iter().map(|num| known.get(num).copied().unwrap_or(0)).collect();
        let recovered = Vec::with_capacity(nums.len());
        let mut chain = LogChain { fs, dir, nums, synced_bytes, recovered, next_seq: first_seq };
        chain.collect_synced_bytes(is_salvage)?;
        Ok(chain)
    }

    /// Raises `synced_bytes` of each log to what its own records and the header of the log after it
    /// state. The reader of the first log does the former for that log.
    fn collect_synced_bytes(&mut self, is_salvage: bool) -> Result<()> {
        for index in (1..self.nums.len()).rev() {
            let (path, file) = self.open_file(self.nums[index])?;
            let from_bytes = FILE_HEADER_BYTES as u64;
            let summary = match Window::new(file, &path)?.scan(self.nums[index], from_bytes, None) {
                Err(e) if is_salvage && e.kind() == ErrorKind::Corruption => continue,
                scanned => scanned?,
            };
            self.synced_bytes[index] = self.synced_bytes[index].max(summary.synced_bytes);
            if self.synced_bytes[index] == 0 {
                continue;
            }
            // Synced records imply a synced header: a bad one is corruption. A salvage then knows
            // the log before it from that log's own records alone.
            let previous = match self.open_log(index, None) {
                Err(e) if is_salvage && e.kind() == ErrorKind::Corruption => continue,
                opened => opened?.previous(),
            };
            if let Some(previous) = previous
                && let Ok(before) = self.nums[..index].binary_search(&previous.file_num)
            {
                self.synced_bytes[before] = self.synced_bytes[before].max(previous.final_bytes);
            }
        }
        Ok(())
    }

    /// Reads the logs in order. After an error, the log at `recovered.len()` is the damaged one.
    fn replay(
        &mut self,
        visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        for (index, &file_num) in self.nums.iter().enumerate() {
            let mut reader = self.open_log(index, self.next_seq)?;
            let mut record_count = 0;
            let end = if self.is_continued_by(&reader)? {
                while let Some(record) = reader.next()? {
                    record_count += 1;
                    self.next_seq = Some(record.next_seq());
                    visit(file_num, record)?;
                }
                reader.end().expect("a reader without a next record has an end")
            } else {
                let what = "the log does not continue at the end of the one before";
                if self.synced_bytes[index] > 0 {
                    let what = format!("{what}, though it is known to be synced");
                    return Err(Error::corruption(reader.path(), 0, what));
                }
                reader.end_unread(WalEndReason::Torn(what))?
            };
            let synced_bytes = reader.synced_bytes();
            self.recovered.push(RecoveredWal { file_num, record_count, synced_bytes, end });
        }
        Ok(())
    }

    /// Whether the log in `reader` starts where the replayed ones end.
    fn is_continued_by(&self, reader: &WalReader) -> Result<bool> {
        if reader.end().is_some() {
            // Its creation was torn: nothing to replay, and the history ends where it did.
            return Ok(true);
        }
        // A log without records may be left of a failed attempt to start one: another log then has
        // its place.
        let first_with_records =
            |logs: &'_ [RecoveredWal]| logs.iter().find(|log| log.record_count > 0).copied();
        let corrupt = |what: String| Err(Error::corruption(reader.path(), 0, what));
        let oldest = self.nums[0];
        let Some(previous) = reader.previous().filter(|previous| previous.file_num >= oldest)
        else {
            // The first log of all, or its predecessor was flushed and removed.
            return match first_with_records(&self.recovered) {
                None => Ok(true),
                Some(older) => {
                    corrupt(format!("the log does not continue log {}", older.file_num.0))
                }
            };
        };
        let named = previous.file_num;
        let Some(index) = self.recovered.iter().position(|log| log.file_num == named) else {
            return corrupt(format!("the log continues log {}, which is missing", named.0));
        };
        let good_bytes = self.recovered[index].end.good_bytes;
        match first_with_records(&self.recovered[index + 1..]) {
            _ if good_bytes == 0 => Ok(false),
            None => Ok(previous.final_bytes == good_bytes),
            Some(other) => corrupt(format!(
                "the log continues log {}, but so does log {}",
                named.0, other.file_num.0
            )),
        }
    }

    /// Counts the operations from `from_bytes` of the damaged log on: by the records that are
    /// found, or by the gap in the sequence numbers if that is larger.
    fn lost_op_count(&self, mut from_bytes: u64) -> Result<u64> {
        let (mut op_count, mut end_seq) = (0, SeqNum(0));
        let mut next_seq = self.next_seq;
        for &num in &self.nums[self.recovered.len()..] {
            let (path, file) = self.open_file(num)?;
            match Window::new(file, &path)?.scan(num, from_bytes, next_seq.take()) {
                // The disk cannot read it.
                Err(e) if e.kind() == ErrorKind::Corruption => {}
                scanned => {
                    let summary = scanned?;
                    op_count += summary.op_count;
                    end_seq = end_seq.max(summary.next_seq);
                }
            }
            from_bytes = 0;
        }
        let gap = self.next_seq.map_or(0, |next_seq| end_seq.0.saturating_sub(next_seq.0));
        Ok(op_count.max(gap))
    }

    fn open_file(&self, num: FileNum) -> Result<(PathBuf, Arc<dyn File>)> {
        let path = file_path(self.dir, FileKind::Wal, num);
        let file = self.fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
        Ok((path, file))
    }

    fn open_log(&self, index: usize, next_seq: Option<SeqNum>) -> Result<WalReader> {
        let (path, file) = self.open_file(self.nums[index])?;
        WalReader::open(file, &path, self.nums[index], self.synced_bytes[index], next_seq)
    }
}

#[cfg(test)]
mod tests;
