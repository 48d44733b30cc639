//! Names of the files in a data directory.
//!
//! All numbers come from one counter and are zero-padded to six decimal digits, so a directory
//! listing is in order of creation.

use super::FileNum;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    /// Write-ahead log: `NNNNNN.wal`.
    Wal,
    /// Table: `NNNNNN.sst`.
    Table,
    /// Manifest: `MANIFEST-NNNNNN`. The highest number is the current one.
    Manifest,
    /// An incomplete file, renamed when complete: `NNNNNN.tmp`. Removed at open.
    Temporary,
    /// Space reserved for deletes and compactions on a full disk: `RESERVE`.
    Reserve,
    /// The lock of the process that has the directory open: `LOCK`.
    Lock,
}

/// Largest accepted file number: counting up from it must not overflow.
const NUM_MAX: u64 = 1 << 56;

/// The name of a file. `num` is ignored for kinds of which there is one file.
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

pub(crate) fn file_path(dir: &Path, kind: FileKind, num: FileNum) -> PathBuf {
    dir.join(file_name(kind, num))
}

/// The inverse of [`file_name`]; `None` for other names.
pub(crate) fn parse_file_name(name: &str) -> Option<(FileKind, FileNum)> {
    let (kind, digits) = match name {
        "RESERVE" => return Some((FileKind::Reserve, FileNum(0))),
        "LOCK" => return Some((FileKind::Lock, FileNum(0))),
        _ => match (name.strip_prefix("MANIFEST-"), name.split_once('.')) {
            (Some(digits), _) => (FileKind::Manifest, digits),
            (None, Some((digits, "wal"))) => (FileKind::Wal, digits),
            (None, Some((digits, "sst"))) => (FileKind::Table, digits),
            (None, Some((digits, "tmp"))) => (FileKind::Temporary, digits),
            (None, _) => return None,
        },
    };
    let plain = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
    let num = FileNum(plain.then(|| digits.parse().ok()).flatten()?);
    (num.0 <= NUM_MAX && file_name(kind, num) == name).then_some((kind, num))
}
