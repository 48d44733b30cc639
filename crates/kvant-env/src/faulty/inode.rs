//! The contents of one file: as its readers see them, as they are on the disk for certain, and the
//! edits between the two.

use super::journal::{Fate, Journal};
use crate::memory::{to_usize, write_at};
use std::io;
use std::sync::Arc;

/// A change of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Write {
        offset_bytes: u64,
        bytes: Vec<u8>,
    },
    /// Cuts or extends.
    SetLen(u64),
    /// Extends, never cuts.
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
    /// What readers see. Shared with crash images until either side writes.
    pub(super) live: Arc<Vec<u8>>,
    /// What survives every crash, but for the durable edits that `journal` still holds.
    pub(super) durable: Arc<Vec<u8>>,
    pub(super) journal: Journal<Edit>,
    /// Names that lead here.
    pub(super) link_count: u64,
}

impl Inode {
    /// A file without a name whose contents are durable.
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

    /// Carries `edit` out for readers and remembers it.
    pub(super) fn edit(&mut self, edit: Edit, fate: Fate) -> io::Result<()> {
        edit.apply(Arc::make_mut(&mut self.live))?;
        self.journal.push(edit, fate);
        self.fold();
        Ok(())
    }

    /// Ends a sync: with `Durable` if it succeeded, with `InDoubt` if it failed.
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
