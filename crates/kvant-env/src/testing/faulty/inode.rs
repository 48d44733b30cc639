//! The contents of one file: the live version, the durable version, and the edits in between.

use super::journal::{Fate, Journal};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// A change of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Write {
        offset_bytes: u64,
        bytes: Vec<u8>,
    },
    /// Truncates or extends.
    SetLen(u64),
    /// Extends, never truncates.
    Extend(u64),
}

impl Edit {
    pub(super) fn apply(&self, contents: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Edit::Write { offset_bytes, bytes } => write_at(contents, bytes, *offset_bytes)?,
            Edit::SetLen(len_bytes) => contents.resize(to_usize(*len_bytes)?, 0),
            Edit::Extend(len_bytes) => {
                let len = contents.len().max(to_usize(*len_bytes)?);
                contents.resize(len, 0);
            }
        }
        Ok(())
    }
}

pub(super) struct Inode {
    /// The contents that readers see. Shared with crash images until either side writes.
    pub(super) live: Arc<Vec<u8>>,
    /// The contents that survive every crash, apart from durable edits still in `journal`.
    pub(super) durable: Arc<Vec<u8>>,
    pub(super) journal: Journal<Edit>,
    /// Number of names.
    pub(super) link_count: u64,
}

impl Inode {
    /// A file without a name, with durable contents.
    pub(super) fn new(contents: Arc<Vec<u8>>) -> Inode {
        Inode {
            live: Arc::clone(&contents),
            durable: contents,
            journal: Journal::new(),
            link_count: 0,
        }
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.live.len() as u64
    }

    /// Applies `edit` to the live contents and records it.
    pub(super) fn edit(&mut self, edit: Edit, fate: Fate) -> io::Result<()> {
        edit.apply(Arc::make_mut(&mut self.live))?;
        self.journal.push(edit, fate);
        self.fold();
        Ok(())
    }

    /// Completes a sync: `Durable` if it succeeded, `InDoubt` if it failed.
    pub(super) fn settle(&mut self, fate: Fate) {
        self.journal.settle(fate, |_| true);
        self.fold();
    }

    fn fold(&mut self) {
        while let Some(edit) = self.journal.pop_durable() {
            let applied = edit.apply(Arc::make_mut(&mut self.durable));
            applied.expect("the same edit succeeded on the live contents");
        }
    }
}

/// Writes as to a file: a gap before `offset_bytes` is filled with zeros.
fn write_at(contents: &mut Vec<u8>, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let start = to_usize(offset_bytes)?;
    let end = start.checked_add(bytes.len()).ok_or(ErrorKind::FileTooLarge)?;
    if start == contents.len() {
        contents.extend_from_slice(bytes);
        return Ok(());
    }
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[start..end].copy_from_slice(bytes);
    Ok(())
}

/// A length that fits into memory.
pub(super) fn to_usize(len_bytes: u64) -> io::Result<usize> {
    let len = usize::try_from(len_bytes).ok().filter(|&len| len <= isize::MAX as usize);
    len.ok_or_else(|| ErrorKind::FileTooLarge.into())
}
