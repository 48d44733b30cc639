//! Restricts a source to a range of user keys.

use crate::cursor::InternalIterator;
use crate::format::{InternalKeyRef, SeqNum};
use kvant_base::Result;

/// The entries of `inner` with user keys from `from` on and before `to`, if given.
pub(crate) struct SliceIter {
    inner: Box<dyn InternalIterator>,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl SliceIter {
    pub(crate) fn new(
        inner: Box<dyn InternalIterator>,
        from: Vec<u8>,
        to: Option<Vec<u8>>,
    ) -> SliceIter {
        SliceIter { inner, from, to }
    }
}

impl InternalIterator for SliceIter {
    fn valid(&self) -> bool {
        let is_before = |to: &Vec<u8>| self.inner.key().user_key < to.as_slice();
        self.inner.valid() && self.to.as_ref().is_none_or(is_before)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.inner.seek(InternalKeyRef::seek(&self.from, SeqNum::MAX))
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        if target.user_key < self.from.as_slice() {
            self.seek_to_first()
        } else {
            self.inner.seek(target)
        }
    }

    fn next(&mut self) -> Result<()> {
        self.inner.next()
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.inner.key()
    }

    fn value(&self) -> &[u8] {
        self.inner.value()
    }
}

#[cfg(test)]
mod tests;
