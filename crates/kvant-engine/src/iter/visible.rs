//! The records visible to a user: the newest visible version of each key, unless it is a tombstone
//! or has expired.
//!
//! Invariants:
//! 1. Between calls, `state` tells where the cursor is.
//! 2. While the cursor moves, `skipped_key` is the user key whose versions it skips, or empty.
//! 3. Keys ascend: an entry whose key is before `skipped_key` is damage that no checksum shows. A
//!    key is sought at most once, so that entries in any order come to an end.
//!
//! Records are returned without an allocation: the buffer of `skipped_key` is reused.

use crate::cursor::InternalIterator;
use crate::format::{InternalKeyRef, SeqNum, ValueKind, split_expiry};
use kvant_base::{Error, ErrorKind, Result};

/// Entries of one user key skipped one by one before a seek, which is then cheaper.
const STEPS_BEFORE_SEEK: u32 = 16;

/// One record of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// When the value expires, in wall milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
}

/// The records visible at one sequence number and time, in key order.
pub(crate) struct VisibleIter<I> {
    inner: I,
    visible_at: SeqNum,
    now_ms: u64,
    end: Option<Vec<u8>>,
    state: State,
    skipped_key: Vec<u8>,
    skipped_count: u64,
}

enum State {
    /// Not positioned, or past the last record.
    Ended,
    /// The cursor is at an entry not yet examined.
    Fresh,
    /// The cursor is at the entry that was returned last.
    Returned,
    Failed(Error),
}

/// How a reader sees an entry.
enum Visibility {
    Visible {
        expires_at_ms: Option<u64>,
    },
    /// Newer than `visible_at`.
    TooNew,
    /// A tombstone or expired: shadows the older versions of its key.
    Gone,
}

impl<I: InternalIterator> VisibleIter<I> {
    /// The records of `inner` visible at `visible_at` and `now_ms`, with keys before `end` if
    /// given.
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
            skipped_key: Vec::new(),
            skipped_count: 0,
        }
    }

    /// Positions before the first record at or after `start`.
    pub(crate) fn seek(&mut self, start: &[u8]) -> Result<()> {
        let sought = self.inner.seek(InternalKeyRef::seek(start, self.visible_at));
        self.state = match &sought {
            Ok(()) => State::Fresh,
            Err(error) => State::Failed(error.clone()),
        };
        sought
    }

    /// The next record; `None` at the end. After an error, every call returns it.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.advance() {
            Ok(Some(expires_at_ms)) => {
                self.state = State::Returned;
                let value = self.inner.value();
                let value =
                    if expires_at_ms.is_some() { &value[size_of::<u64>()..] } else { value };
                Ok(Some(Record { key: self.inner.key().user_key, value, expires_at_ms }))
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

    /// Entries skipped so far: tombstones, expired, shadowed and too new ones. A seek over many
    /// versions of a key counts as one.
    pub(crate) fn skipped_count(&self) -> u64 {
        self.skipped_count
    }

    /// Moves to the next visible entry and returns its expiry, if it has one.
    fn advance(&mut self) -> Result<Option<Option<u64>>> {
        // Whether further versions of `skipped_key` are shadowed.
        let mut shadowing = match &self.state {
            State::Ended => return Ok(None),
            State::Failed(error) => return Err(error.clone()),
            State::Fresh => {
                self.skipped_key.clear();
                false
            }
            State::Returned => {
                self.skip_current_key();
                self.inner.next()?;
                true
            }
        };
        let mut step_count = 0;
        while self.inner.valid() {
            let key = self.inner.key();
            // One comparison for most keys. None is before the empty one.
            if key.user_key <= self.skipped_key.as_slice() {
                if key.user_key < self.skipped_key.as_slice() {
                    return Err(out_of_order());
                }
                if shadowing {
                    self.skipped_count += 1;
                    step_count += 1;
                    if step_count == STEPS_BEFORE_SEEK {
                        let target = InternalKeyRef { user_key: &self.skipped_key, trailer: 0 };
                        self.inner.seek(target)?;
                    } else {
                        self.inner.next()?;
                    }
                    continue;
                }
            }
            if self.end.as_deref().is_some_and(|end| key.user_key >= end) {
                return Ok(None);
            }
            match self.visibility(key)? {
                Visibility::Visible { expires_at_ms } => return Ok(Some(expires_at_ms)),
                Visibility::Gone => {
                    self.skip_current_key();
                    shadowing = true;
                    step_count = 0;
                }
                Visibility::TooNew => {
                    if step_count == 0 || key.user_key != self.skipped_key {
                        self.skip_current_key();
                        step_count = 0;
                    }
                    shadowing = false;
                    step_count += 1;
                }
            }
            self.skipped_count += 1;
            if step_count == STEPS_BEFORE_SEEK {
                self.inner.seek(InternalKeyRef::seek(&self.skipped_key, self.visible_at))?;
            } else {
                self.inner.next()?;
            }
        }
        Ok(None)
    }

    fn skip_current_key(&mut self) {
        self.skipped_key.clear();
        self.skipped_key.extend_from_slice(self.inner.key().user_key);
    }

    fn visibility(&self, key: InternalKeyRef<'_>) -> Result<Visibility> {
        if key.seq() > self.visible_at {
            return Ok(Visibility::TooNew);
        }
        let kind = kind_of(key)?;
        if kind == ValueKind::Delete {
            return Ok(Visibility::Gone);
        }
        if kind == ValueKind::Put {
            return Ok(Visibility::Visible { expires_at_ms: None });
        }
        let expires_at_ms = expiry_of(kind, self.inner.value())?;
        Ok(if expires_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
            Visibility::Gone
        } else {
            Visibility::Visible { expires_at_ms }
        })
    }
}

#[cold]
fn out_of_order() -> Error {
    let message = "the keys of a range do not ascend; a verification finds the table";
    Error::new(ErrorKind::Corruption, message.to_string())
}

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
