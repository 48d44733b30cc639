//! A merge that reports each entry that it passes, kept or not, so that background work can give
//! way to requests in between.

use super::MergeIter;
use crate::cursor::{InternalIterator, StoredBlock};
use crate::format::InternalKeyRef;
use kvant_base::Result;

/// Calls `passed` with the bytes of each entry before it moves on.
pub(crate) struct PacedIter<'a> {
    inner: MergeIter,
    passed: &'a mut (dyn FnMut(usize) + Send),
}

impl<'a> PacedIter<'a> {
    pub(crate) fn new(
        inner: MergeIter,
        passed: &'a mut (dyn FnMut(usize) + Send),
    ) -> PacedIter<'a> {
        PacedIter { inner, passed }
    }
}

impl InternalIterator for PacedIter<'_> {
    fn valid(&self) -> bool {
        self.inner.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.inner.seek_to_first()
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.inner.seek(target)
    }

    fn next(&mut self) -> Result<()> {
        (self.passed)(self.inner.key().user_key.len() + self.inner.value().len());
        self.inner.next()
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.inner.key()
    }

    fn value(&self) -> &[u8] {
        self.inner.value()
    }

    fn own_block(&self) -> Option<StoredBlock<'_>> {
        self.inner.own_block()
    }
}
