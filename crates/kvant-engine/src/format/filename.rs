//! Names of the files in a data directory.
//!
//! Numbers are decimal, zero-padded to six digits, from one counter, so that a directory listing is
//! in order of creation.

use super::FileNum;
use std::path::{Path, PathBuf};

/// What a file in the data directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    /// Write-ahead log: `NNNNNN.wal`.
    Wal,
    /// Table: `NNNNNN.sst`.
    Table,
    /// Manifest: `MANIFEST-NNNNNN`. The one with the highest number is current.
    Manifest,
    /// A file being made, to be renamed when complete: `NNNNNN.tmp`. Removed at open.
    Temporary,
    /// Space kept for deletes and compaction on a full disk: `RESERVE`.
    Reserve,
    /// The owner's lock: `LOCK`.
    Lock,
}

/// A larger number is not ours: counting on from it must not overflow.
const NUM_MAX: u64 = 1 << 56;

/// The name of a file. `num` is ignored for the kinds that exist once.
pub(crate) fn file_name(kind: FileKind, num: FileNum) -> String {
    let num = num.0;
    match kind {
        FileKind::Wal => format!("{num:06}.wal"),
        FileKind::Table => format!("{num:06}.sst"),
        FileKind::Manifest => format!("MANIFEST-{num:06}"),
        FileKind::Temporary => format!("{num:06}.tmp"),
        FileKind::Reserve => "RESERVE".to_string(),
        FileKind::Lock => "LOCK".to_string(),
    }
}

/// [`file_name`] in `dir`.
pub(crate) fn file_path(dir: &Path, kind: FileKind, num: FileNum) -> PathBuf {
    dir.join(file_name(kind, num))
}

/// What a name says; `None` for names that are not ours.
pub(crate) fn parse_file_name(name: &str) -> Option<(FileKind, FileNum)> {
    match name {
        "RESERVE" => return Some((FileKind::Reserve, FileNum(0))),
        "LOCK" => return Some((FileKind::Lock, FileNum(0))),
        _ => {}
    }
    let (kind, digits) = if let Some(digits) = name.strip_prefix("MANIFEST-") {
        (FileKind::Manifest, digits)
    } else {
        let (digits, suffix) = name.split_once('.')?;
        let kind = match suffix {
            "wal" => FileKind::Wal,
            "sst" => FileKind::Table,
            "tmp" => FileKind::Temporary,
            _ => return None,
        };
        (kind, digits)
    };
    let plain = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
    let num = FileNum(plain.then(|| digits.parse().ok()).flatten()?);
    (num.0 <= NUM_MAX && file_name(kind, num) == name).then_some((kind, num))
}
