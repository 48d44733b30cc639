//! Reads several log files as one log: "Several files" in `docs/formats/wal.md`.

use super::reader::{WalEnd, WalEndReason, WalReader, WalRecord, synced_bytes_in_file};
use crate::format::{FileKind, FileNum, SeqNum, file_path};
use kvant_base::{Error, Result};
use kvant_env::Fs;
use std::path::Path;

/// One log file after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecoveredWal {
    pub(crate) file_num: FileNum,
    pub(crate) record_count: u64,
    pub(crate) end: WalEnd,
}

/// Calls `visit` with every record of the logs `nums` (ascending) that is good, and says how each file ended.
///
/// What is visited is a prefix of what was written: a log is replayed only if it continues what was replayed
/// before it, to the byte; others are discarded. `first_seq` is what the first record must start with
/// (`None`: anything).
///
/// # Errors
/// `Corruption` when something that is known to be synced is bad or missing, when a log between two others is
/// missing, or when sequence numbers do not continue; `Unsupported`; `Io`; what `visit` returns.
pub(crate) fn recover(
    fs: &dyn Fs,
    dir: &Path,
    nums: &[FileNum],
    first_seq: Option<SeqNum>,
    visit: &mut dyn FnMut(FileNum, WalRecord<'_>) -> Result<()>,
) -> Result<Vec<RecoveredWal>> {
    let synced_bytes = synced_bytes_of_all(fs, dir, nums)?;
    let mut recovered: Vec<RecoveredWal> = Vec::with_capacity(nums.len());
    let mut next_seq = first_seq;
    for (&file_num, &synced_bytes) in nums.iter().zip(&synced_bytes) {
        let mut reader = open(fs, dir, file_num, synced_bytes, next_seq)?;
        let path = file_path(dir, FileKind::Wal, file_num);
        if !continues(&reader, nums[0], &recovered, &path)? {
            let what = "the log does not continue at the end of the one before";
            if synced_bytes > 0 {
                return Err(Error::corruption(
                    &path,
                    0,
                    format!("{what}, though it is known to be synced"),
                ));
            }
            let reason = WalEndReason::Torn(what);
            let end = WalEnd {
                good_bytes: 0,
                discarded_bytes: reader.len_bytes(),
                reason,
            };
            recovered.push(RecoveredWal {
                file_num,
                record_count: 0,
                end,
            });
            continue;
        }
        let mut record_count = 0;
        while let Some(record) = reader.next()? {
            record_count += 1;
            visit(file_num, record)?;
        }
        next_seq = reader.next_seq();
        let end = reader
            .end()
            .expect("a reader that has no next record knows its end");
        recovered.push(RecoveredWal {
            file_num,
            record_count,
            end,
        });
    }
    Ok(recovered)
}

/// Whether the log being read goes on where what was replayed so far ends. `oldest` is the first log there
/// is.
fn continues(reader: &WalReader, oldest: FileNum, recovered: &[RecoveredWal], path: &Path) -> Result<bool> {
    if reader.end().is_some() {
        // Its creation was torn: there is nothing to replay, and what was replayed ends where it did.
        return Ok(true);
    }
    // A log without records may be left of an attempt to start one that failed: another then has its place.
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

/// How far each log is known to be synced: by what it says itself, and by what the logs after it say. The
/// first log is not asked: its reader finds what it says.
fn synced_bytes_of_all(fs: &dyn Fs, dir: &Path, nums: &[FileNum]) -> Result<Vec<u64>> {
    let mut synced_bytes = vec![0; nums.len()];
    for index in (1..nums.len()).rev() {
        let path = file_path(dir, FileKind::Wal, nums[index]);
        let file = fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
        synced_bytes[index] = synced_bytes_in_file(file, &path, nums[index])?.max(synced_bytes[index]);
        if synced_bytes[index] > 0 {
            // Its header is synced then: if it is bad all the same, opening the log fails.
            let reader = open(fs, dir, nums[index], synced_bytes[index], None)?;
            if let Some(previous) = reader.previous()
                && let Ok(before) = nums[..index].binary_search(&previous.file_num)
            {
                synced_bytes[before] = previous.final_bytes;
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
