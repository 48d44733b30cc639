//! Reads several log files as one log: "Several files" in `docs/formats/wal.md`.

use super::layout::FILE_HEADER_BYTES;
use super::reader::{WalEnd, WalEndReason, WalReader, WalRecord};
use super::scan::stated_in_file;
use crate::format::{FileKind, FileNum, SeqNum, file_path};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Fs;
use std::collections::BTreeMap;
use std::path::Path;

/// One log file after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecoveredWal {
    pub(crate) file_num: FileNum,
    pub(crate) record_count: u64,
    pub(crate) end: WalEnd,
}

/// Calls `visit` with every record of the logs `nums` (ascending) that is good, and says how each
/// file ended.
///
/// What is visited is a prefix of what was written: a log is replayed only if it continues what was
/// replayed before it, to the byte; others are discarded. `known` holds the bytes of each log that
/// the manifest says are synced. `first_seq` is what the first record must start with (`None`:
/// anything).
///
/// # Errors
/// `Corruption` when something that is known to be synced is bad or missing, when a log between two
/// others is missing, or when sequence numbers do not continue; `Unsupported`; `Io`; what `visit`
/// returns.
pub(crate) fn recover(
    fs: &dyn Fs,
    dir: &Path,
    nums: &[FileNum],
    known: &BTreeMap<FileNum, u64>,
    first_seq: Option<SeqNum>,
    visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
) -> Result<Vec<RecoveredWal>> {
    let mut chain = Chain::new(fs, dir, nums, known, first_seq, Bad::Fails)?;
    for &num in nums {
        chain.replay(num, visit)?;
    }
    Ok(chain.recovered)
}

/// What [`salvage`] read, and what it had to leave.
pub(crate) struct Salvaged {
    /// Good records with operations.
    pub(crate) record_count: u64,
    /// What ends the history; `None`: everything was read.
    pub(crate) damage: Option<Error>,
    /// Operations behind the damage, as far as they can be counted.
    pub(crate) lost_op_count: u64,
}

/// As [`recover`], but damage ends the history instead of being an error.
///
/// # Errors
/// `Unsupported`; `Io`; what `visit` returns.
pub(crate) fn salvage(
    fs: &dyn Fs,
    dir: &Path,
    nums: &[FileNum],
    known: &BTreeMap<FileNum, u64>,
    first_seq: Option<SeqNum>,
    visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
) -> Result<Salvaged> {
    let mut chain = Chain::new(fs, dir, nums, known, first_seq, Bad::IsSkipped)?;
    let mut salvaged = Salvaged { record_count: 0, damage: None, lost_op_count: 0 };
    for (index, &num) in nums.iter().enumerate() {
        let replayed = chain.replay(num, &mut |num, record| {
            visit(num, record)?;
            salvaged.record_count += u64::from(record.op_count > 0);
            Ok(())
        });
        match replayed {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Corruption => {
                let from_bytes = error.offset_bytes().unwrap_or(0);
                let behind = &nums[index..];
                salvaged.lost_op_count =
                    op_count_behind(fs, dir, behind, from_bytes, chain.next_seq)?;
                salvaged.damage = Some(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(salvaged)
}

/// Counts the operations in the logs `nums`, from an offset of the first on, by the record headers
/// that verify; or by the sequence numbers between `next_seq` and the last of them, if those are
/// more.
fn op_count_behind(
    fs: &dyn Fs,
    dir: &Path,
    nums: &[FileNum],
    from_bytes: u64,
    next_seq: Option<SeqNum>,
) -> Result<u64> {
    let (mut op_count, mut end_seq) = (0, SeqNum(0));
    for (index, &num) in nums.iter().enumerate() {
        let path = file_path(dir, FileKind::Wal, num);
        let file = fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
        let stated = stated_in_file(file, &path, num, if index == 0 { from_bytes } else { 0 })?;
        op_count += stated.op_count;
        end_seq = end_seq.max(stated.next_seq);
    }
    let missing = next_seq.map_or(0, |next_seq| end_seq.0.saturating_sub(next_seq.0));
    Ok(op_count.max(missing))
}

/// Logs being read as one.
struct Chain<'a> {
    fs: &'a dyn Fs,
    dir: &'a Path,
    nums: &'a [FileNum],
    /// How far each is known to be synced.
    synced_bytes: Vec<u64>,
    /// Those that have been read.
    recovered: Vec<RecoveredWal>,
    /// What the next record must start with; `None` before the first of all, when anything goes.
    next_seq: Option<SeqNum>,
}

impl<'a> Chain<'a> {
    fn new(
        fs: &'a dyn Fs,
        dir: &'a Path,
        nums: &'a [FileNum],
        known: &BTreeMap<FileNum, u64>,
        first_seq: Option<SeqNum>,
        bad: Bad,
    ) -> Result<Chain<'a>> {
        Ok(Chain {
            fs,
            dir,
            nums,
            synced_bytes: synced_bytes_of_all(fs, dir, nums, known, bad)?,
            recovered: Vec::with_capacity(nums.len()),
            next_seq: first_seq,
        })
    }

    /// Reads the next log, which is `file_num`, if it continues those before it.
    fn replay(
        &mut self,
        file_num: FileNum,
        visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        let synced_bytes = self.synced_bytes[self.recovered.len()];
        let mut reader = open(self.fs, self.dir, file_num, synced_bytes, self.next_seq)?;
        let path = file_path(self.dir, FileKind::Wal, file_num);
        let mut record_count = 0;
        let end = if continues(&reader, self.nums[0], &self.recovered, &path)? {
            while let Some(record) = reader.next()? {
                record_count += 1;
                self.next_seq = Some(record.next_seq());
                visit(file_num, record)?;
            }
            reader.end().expect("a reader that has no next record knows its end")
        } else {
            let what = "the log does not continue at the end of the one before";
            if synced_bytes > 0 {
                let what = format!("{what}, though it is known to be synced");
                return Err(Error::corruption(&path, 0, what));
            }
            WalEnd {
                good_bytes: 0,
                discarded_bytes: reader.len_bytes(),
                reason: WalEndReason::Torn(what),
            }
        };
        self.recovered.push(RecoveredWal { file_num, record_count, end });
        Ok(())
    }
}

/// Whether the log being read goes on where what was replayed so far ends. `oldest` is the first
/// log there is.
fn continues(
    reader: &WalReader,
    oldest: FileNum,
    recovered: &[RecoveredWal],
    path: &Path,
) -> Result<bool> {
    if reader.end().is_some() {
        // Its creation was torn: there is nothing to replay, and what was replayed ends where it
        // did.
        return Ok(true);
    }
    // A log without records may be left of an attempt to start one that failed: another then has
    // its place.
    let holds_records = |log: &RecoveredWal| log.record_count > 0;
    let corrupt = |what: String| Err(Error::corruption(path, 0, what));
    let Some(previous) = reader.previous().filter(|previous| previous.file_num >= oldest) else {
        // The first log of all, or the one before it was flushed and is gone.
        return match recovered.iter().find(|log| holds_records(log)) {
            None => Ok(true),
            Some(older) => corrupt(format!("the log does not continue log {}", older.file_num.0)),
        };
    };
    let named = previous.file_num;
    let Some(index) = recovered.iter().position(|log| log.file_num == named) else {
        return corrupt(format!("the log continues log {}, which is missing", named.0));
    };
    if recovered[index].end.good_bytes == 0 {
        return Ok(false);
    }
    match recovered[index + 1..].iter().find(|log| holds_records(log)) {
        None => Ok(previous.final_bytes == recovered[index].end.good_bytes),
        Some(other) => corrupt(format!(
            "the log continues log {}, but so does log {}",
            named.0, other.file_num.0
        )),
    }
}

/// The effect of a bad header in a log of which something is known to be synced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bad {
    Fails,
    /// The log before it is then known from its own records alone.
    IsSkipped,
}

/// How far each log is known to be synced: by `known`, by its own records, and by the header of the
/// log after it. The reader of the first log collects the second of these itself.
fn synced_bytes_of_all(
    fs: &dyn Fs,
    dir: &Path,
    nums: &[FileNum],
    known: &BTreeMap<FileNum, u64>,
    bad: Bad,
) -> Result<Vec<u64>> {
    let mut synced_bytes: Vec<u64> =
        nums.iter().map(|num| known.get(num).copied().unwrap_or(0)).collect();
    for index in (1..nums.len()).rev() {
        let path = file_path(dir, FileKind::Wal, nums[index]);
        let file = fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
        synced_bytes[index] = stated_in_file(file, &path, nums[index], FILE_HEADER_BYTES as u64)?
            .synced_bytes
            .max(synced_bytes[index]);
        if synced_bytes[index] > 0 {
            // Its header is synced then: if it is bad all the same, opening the log fails.
            let reader = match open(fs, dir, nums[index], synced_bytes[index], None) {
                Err(error) if bad == Bad::IsSkipped && error.kind() == ErrorKind::Corruption => {
                    continue;
                }
                opened => opened?,
            };
            if let Some(previous) = reader.previous()
                && let Ok(before) = nums[..index].binary_search(&previous.file_num)
            {
                synced_bytes[before] = synced_bytes[before].max(previous.final_bytes);
            }
        }
    }
    Ok(synced_bytes)
}

fn open(
    fs: &dyn Fs,
    dir: &Path,
    file_num: FileNum,
    synced_bytes: u64,
    next_seq: Option<SeqNum>,
) -> Result<WalReader> {
    let path = file_path(dir, FileKind::Wal, file_num);
    let file = fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
    WalReader::open(file, &path, file_num, synced_bytes, next_seq)
}

#[cfg(test)]
mod tests;
