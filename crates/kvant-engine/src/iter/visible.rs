//! What a user sees of internal keys: each key's newest version that is visible, unless that is a
//! tombstone or expired.
//!
//! Invariants:
//! 1. Between calls the cursor stands on the entry returned last, on one not yet looked at, or
//!    nowhere: `state` says which.
//! 2. While the cursor moves, `stepped_over` is the user key whose versions it steps over.
//!
//! No allocation a record: the buffer of `stepped_over` is reused.

use super::InternalIterator;
use crate::format::{InternalKeyRef, SeqNum, ValueKind, split_expiry};
use kvant_base::{Error, ErrorKind, Result};

/// After stepping over this many entries of one user key in a row, a seek is cheaper than more
/// steps.
const STEPS_BEFORE_SEEK: u32 = 16;

/// A record as its user gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisibleEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// When it expires, in milliseconds since 1970 by wall clock.
    pub(crate) expiry_ms: Option<u64>,
}

/// The records visible at one sequence number and time, in key order.
pub(crate) struct VisibleIter<I> {
    inner: I,
    visible_at: SeqNum,
    now_ms: u64,
    end: Option<Vec<u8>>,
    state: State,
    stepped_over: Vec<u8>,
    skipped_count: u64,
}

enum State {
    /// Not positioned, or past the last record.
    Ended,
    /// The cursor stands on an entry not yet looked at.
    Fresh,
    /// The cursor stands on the entry that was returned last.
    Returned,
    /// The cursor is not valid.
    Failed(Error),
}

/// What an entry is to the user.
enum Sight {
    Shown {
        expiry_ms: Option<u64>,
    },
    /// Newer than the view.
    TooNew,
    /// A tombstone or expired: it hides the older versions of its key.
    Gone,
}

impl<I: InternalIterator> VisibleIter<I> {
    /// A view of `inner` at `visible_at` and `now_ms`, of keys below `end` where one is given.
    pub(crate) fn new(
        inner: I,
        visible_at: SeqNum,
        now_ms: u64,
        end: Option<&[u8]>,
    ) -> VisibleIter<I> {
        VisibleIter {
            inner,
            visible_at,
            now_ms,
            end: end.map(<[u8]>::to_vec),
            state: State::Ended,
            stepped_over: Vec::new(),
            skipped_count: 0,
        }
    }

    /// Positions before the first record.
    #[cfg(test)]
    pub(crate) fn seek_to_first(&mut self) -> Result<()> {
        let sought = self.inner.seek_to_first();
        self.positioned(sought)
    }

    /// Positions before the first record at or after `start`.
    pub(crate) fn seek(&mut self, start: &[u8]) -> Result<()> {
        let sought = self.inner.seek(InternalKeyRef::seek(start, self.visible_at));
        self.positioned(sought)
    }

    fn positioned(&mut self, sought: Result<()>) -> Result<()> {
        self.state = match &sought {
            Ok(()) => State::Fresh,
            Err(error) => State::Failed(error.clone()),
        };
        sought
    }

    /// The next record; `None` at the end. After an error every call returns it again.
    pub(crate) fn next(&mut self) -> Result<Option<VisibleEntry<'_>>> {
        match self.advance() {
            Ok(Some(expiry_ms)) => {
                self.state = State::Returned;
                let value = self.inner.value();
                let value = if expiry_ms.is_some() { &value[size_of::<u64>()..] } else { value };
                Ok(Some(VisibleEntry { key: self.inner.key().user_key, value, expiry_ms }))
            }
            Ok(None) => {
                self.state = State::Ended;
                Ok(None)
            }
            Err(error) => {
                self.state = State::Failed(error.clone());
                Err(error)
            }
        }
    }

    /// Entries stepped over so far that were not shown: tombstones, expired, shadowed and too new
    /// ones. A seek over many versions of a key counts as one.
    pub(crate) fn skipped_count(&self) -> u64 {
        self.skipped_count
    }

    /// Moves to the next entry to show and gives its expiry.
    fn advance(&mut self) -> Result<Option<Option<u64>>> {
        let mut hiding = match &self.state {
            State::Ended => return Ok(None),
            State::Failed(error) => return Err(error.clone()),
            State::Fresh => false,
            State::Returned => {
                self.step_over_current();
                self.inner.next()?;
                true
            }
        };
        let mut step_count = 0;
        while self.inner.valid() {
            let key = self.inner.key();
            if hiding && key.user_key == self.stepped_over {
                self.skipped_count += 1;
                step_count += 1;
                if step_count < STEPS_BEFORE_SEEK {
                    self.inner.next()?;
                } else {
                    step_count = 0;
                    self.inner.seek(InternalKeyRef { user_key: &self.stepped_over, trailer: 0 })?;
                }
                continue;
            }
            if self.end.as_deref().is_some_and(|end| key.user_key >= end) {
                return Ok(None);
            }
            match self.sight(key)? {
                Sight::Shown { expiry_ms } => return Ok(Some(expiry_ms)),
                Sight::Gone => {
                    self.step_over_current();
                    hiding = true;
                    step_count = 0;
                }
                Sight::TooNew => {
                    if step_count == 0 || key.user_key != self.stepped_over {
                        self.step_over_current();
                        step_count = 0;
                    }
                    hiding = false;
                    step_count += 1;
                }
            }
            self.skipped_count += 1;
            if step_count < STEPS_BEFORE_SEEK {
                self.inner.next()?;
            } else {
                step_count = 0;
                self.inner.seek(InternalKeyRef::seek(&self.stepped_over, self.visible_at))?;
            }
        }
        Ok(None)
    }

    fn step_over_current(&mut self) {
        self.stepped_over.clear();
        self.stepped_over.extend_from_slice(self.inner.key().user_key);
    }

    fn sight(&self, key: InternalKeyRef<'_>) -> Result<Sight> {
        if key.seq() > self.visible_at {
            return Ok(Sight::TooNew);
        }
        let kind = kind_of(key)?;
        if kind == ValueKind::Delete {
            return Ok(Sight::Gone);
        }
        let expiry_ms = expiry_of(kind, self.inner.value())?;
        Ok(if expiry_ms.is_some_and(|expiry_ms| expiry_ms <= self.now_ms) {
            Sight::Gone
        } else {
            Sight::Shown { expiry_ms }
        })
    }
}

/// The kind of an entry read from storage.
pub(super) fn kind_of(key: InternalKeyRef<'_>) -> Result<ValueKind> {
    key.kind().ok_or_else(|| {
        let message = format!(
            "an entry has the unknown kind {} (sequence number {})",
            key.trailer as u8,
            key.seq().0
        );
        Error::new(ErrorKind::Corruption, message)
    })
}

/// The expiry of an entry read from storage.
pub(super) fn expiry_of(kind: ValueKind, stored: &[u8]) -> Result<Option<u64>> {
    let (expiry_ms, _) = split_expiry(kind, stored).ok_or_else(|| {
        let message =
            format!("an expiring value of {} bytes is shorter than its expiry", stored.len());
        Error::new(ErrorKind::Corruption, message)
    })?;
    Ok(expiry_ms)
}

#[cfg(test)]
mod tests;
