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

/// Calls `visit` with every record of the logs `nums` (in order, oldest first) that is good, and says how
/// each file ended.
///
/// What is visited is a prefix of what was written: where one log ends short of the length that its successor
/// names, the successor and all that follow are discarded. `first_seq` is what the first record must start
/// with (`None`: anything).
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
    let mut ended = false;
    for (&file_num, &synced_bytes) in nums.iter().zip(&synced_bytes) {
        let mut reader = open(fs, dir, file_num, synced_bytes, next_seq)?;
        ended |= !continues(&reader, &recovered, &file_path(dir, FileKind::Wal, file_num))?;
        if ended {
            let end = WalEnd {
                good_bytes: 0,
                discarded_bytes: reader.len_bytes(),
                reason: WalEndReason::Torn("the log before ends short of its final length"),
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

/// Whether the log being read follows on all that was written to the one that its header names. A file between the two whose header
/// was never finished does not count: making it failed, and another was made.
fn continues(reader: &WalReader, recovered: &[RecoveredWal], path: &Path) -> Result<bool> {
    let oldest = recovered.first().map(|wal| wal.file_num);
    let bad = |what: String| Err(Error::corruption(path, 0, what));
    match reader.previous() {
        // Without a header there is nothing to replay either.
        None if reader.end().is_some() => Ok(true),
        None if recovered.iter().all(|wal| wal.end.good_bytes == 0) => Ok(true),
        None => bad("the log says that it is the first, but there are older ones".into()),
        Some(previous) if oldest.is_none_or(|oldest| previous.file_num < oldest) => match oldest {
            None => Ok(true),
            Some(_) => bad(format!(
                "the log continues log {}, but there are newer ones before it",
                previous.file_num.0
            )),
        },
        Some(previous) => match recovered.iter().find(|wal| wal.file_num == previous.file_num) {
            Some(before) => Ok(previous.final_bytes == before.end.good_bytes),
            None => bad(format!(
                "the log continues log {}, which is missing",
                previous.file_num.0
            )),
        },
    }
}

/// How far each log is known to be synced: by what it says itself, and by what the logs after it say.
fn synced_bytes_of_all(fs: &dyn Fs, dir: &Path, nums: &[FileNum]) -> Result<Vec<u64>> {
    let mut synced_bytes = vec![0; nums.len()];
    for index in (1..nums.len()).rev() {
        let path = file_path(dir, FileKind::Wal, nums[index]);
        let file = fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
        let stated_bytes = synced_bytes_in_file(file, &path, nums[index])?;
        if synced_bytes[index].max(stated_bytes) > 0 {
            // Its header is synced then: if it is bad all the same, opening the log fails.
            let reader = open(fs, dir, nums[index], synced_bytes[index].max(stated_bytes), None)?;
            if let Some(previous) = reader.previous()
                && let Ok(before) = nums.binary_search(&previous.file_num)
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
