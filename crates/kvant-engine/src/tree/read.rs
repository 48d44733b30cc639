//! Point reads: memtables newest first, then level 0 newest first, then one table a level.

use super::Tree;
use super::view::SuperVersion;
use crate::format::value::ValueTaker;
use crate::format::{SeqNum, ValueKind, key_hash, split_expiry};
use crate::table::{FoundEntry, PointRead, PointResult, ReadTrace, Stop, Table, Wait};
use arc_swap::Guard;
use bytes::Bytes;
use kvant_base::log::Level;
use kvant_base::tag::{self, Stage};
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The answer to a lookup that does not wait for the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<V = Bytes> {
    /// The key's newest value; `None` when absent, deleted or expired.
    Known(Option<V>),
    /// A block has to be read that is not in the block cache, and either the system would wait for
    /// the disk (or cannot tell), or the block is large.
    NeedsDisk {
        /// Length of the block in its file: the memory to read it, unless it is compressed.
        block_bytes: u32,
    },
}

impl<V> Lookup<V> {
    /// The value that was found by a read that waits for every block.
    pub(crate) fn into_value(self) -> Result<Option<V>> {
        match self {
            Lookup::Known(value) => Ok(value),
            Lookup::NeedsDisk { block_bytes } => Err(Stop::NeedsDisk(block_bytes).into()),
        }
    }
}

enum Source {
    Memtable,
    Table,
}

impl Tree {
    #[inline]
    pub(crate) fn look_up<T: ValueTaker>(
        &self,
        key: &[u8],
        wait: Wait,
        trace: &mut ReadTrace,
        to: T,
    ) -> Result<Lookup<T::Value>> {
        let (view, seq) = self.newest()?;
        self.look_up_at(&view, seq, key, wait, trace, to)
    }

    #[inline]
    pub(crate) fn look_up_at<T: ValueTaker>(
        &self,
        view: &SuperVersion,
        seq: SeqNum,
        key: &[u8],
        wait: Wait,
        trace: &mut ReadTrace,
        mut to: T,
    ) -> Result<Lookup<T::Value>> {
        let mut read = PointRead::new(wait);
        let found = self.find(view, key, seq, &mut read, &mut to);
        trace.add(read.trace);
        let found = match found {
            Ok(found) => Ok(found),
            // Counted when it is repeated.
            Err(Stop::NeedsDisk(block_bytes)) => return Ok(Lookup::NeedsDisk { block_bytes }),
            Err(Stop::Failed(error)) => Err(error),
        };
        self.count_get(&found, read.trace);
        Ok(Lookup::Known(found?.map(|(value, _)| value)))
    }

    /// The view of a read that begins now.
    #[inline]
    fn newest(&self) -> Result<(Guard<Arc<SuperVersion>>, SeqNum)> {
        self.context.check_open()?;
        // The view first, the number second: see `view`.
        let view = self.views.load();
        let seq = SeqNum(self.visible_seq.load(Ordering::Acquire));
        Ok((view, seq))
    }

    #[inline]
    fn count_get<V>(&self, found: &Result<Option<(V, Source)>>, touched: ReadTrace) {
        let (counters, block_count) = (&self.counters, u64::from(touched.block_count));
        add(&counters.gets, 1);
        match found {
            Ok(Some((_, source))) => {
                add(&counters.present, 1);
                if matches!(source, Source::Table) {
                    add(&counters.present_from_table, 1);
                    add(&counters.present_fetches, block_count);
                }
            }
            Ok(None) if block_count > 0 => add(&counters.absent_fetches, block_count),
            Ok(None) => {}
            Err(error) => self.note_read_error(error),
        }
    }

    #[inline]
    fn find<T: ValueTaker>(
        &self,
        view: &SuperVersion,
        key: &[u8],
        seq: SeqNum,
        read: &mut PointRead,
        to: &mut T,
    ) -> PointResult<Option<(T::Value, Source)>> {
        let tag = tag::stage(Stage::Memtable);
        let hash = key_hash(key);
        let memtables =
            std::iter::once(&view.active).chain(view.sealed.iter().map(|sealed| &sealed.memtable));
        // Where the key may be differs from request to request, so the processor cannot guess it.
        memtables.clone().for_each(|memtable| memtable.prefetch(hash));
        let deeper = view.version.deeper_tables_for_key(key);
        let newest = view.version.newest_tables_for_key(key);
        newest.chain(deeper.into_iter().flatten()).for_each(|file| file.table.prefetch(hash));
        for memtable in memtables {
            if let Some((_, kind, stored)) = memtable.get(key, hash, seq) {
                let value =
                    self.live_value(kind, stored).expect("a memtable holds what was encoded here");
                return Ok(value.map(|value| (memtable.give(value, to), Source::Memtable)));
            }
        }
        tag.stage(Stage::Table);
        // Level 0 is in the order of the newest write of each table. After a repair the ranges of
        // sequence numbers may overlap: a version counts only when no later table can hold a newer
        // one.
        let mut newest: Option<(SeqNum, Option<T::Value>)> = None;
        for file in view.version.newest_tables_for_key(key) {
            if newest.as_ref().is_some_and(|(found_seq, _)| *found_seq > file.meta.seq_max) {
                break;
            }
            if let Some(entry) = file.table.get(key, hash, seq, read)?
                && newest.as_ref().is_none_or(|(found_seq, _)| *found_seq < entry.seq)
            {
                newest = Some((entry.seq, self.give_live(&file.table, &entry, to)?));
            }
        }
        if let Some((_, value)) = newest {
            return Ok(value.map(|value| (value, Source::Table)));
        }
        for file in deeper.into_iter().flatten() {
            if let Some(entry) = file.table.get(key, hash, seq, read)? {
                let value = self.give_live(&file.table, &entry, to)?;
                return Ok(value.map(|value| (value, Source::Table)));
            }
        }
        Ok(None)
    }

    fn give_live<T: ValueTaker>(
        &self,
        table: &Table,
        entry: &FoundEntry,
        to: &mut T,
    ) -> Result<Option<T::Value>> {
        let value = self.live_value(entry.kind, entry).ok_or_else(|| {
            Error::new(ErrorKind::Corruption, "an expiring value is shorter than its expiry")
                .with_file(table.path())
        })?;
        // An expiry stands before the value.
        Ok(value.map(|value| entry.give_behind(entry.len() - value.len(), to)))
    }

    /// The value that a reader sees now: `Some(None)` when deleted or expired; `None` when the
    /// stored value is malformed.
    #[inline]
    fn live_value<'a>(&self, kind: ValueKind, stored: &'a [u8]) -> Option<Option<&'a [u8]>> {
        match kind {
            ValueKind::Delete => Some(None),
            ValueKind::Put => Some(Some(stored)),
            ValueKind::PutExpiring => {
                let (expiry_ms, value) = split_expiry(kind, stored)?;
                let expired = expiry_ms
                    .is_some_and(|expiry_ms| expiry_ms <= self.context.env.clock.wall_ms());
                Some((!expired).then_some(value))
            }
        }
    }

    /// Logs corruption, with file and offset. The caller returns the error too.
    pub(crate) fn note_read_error(&self, error: &Error) {
        if error.kind() == ErrorKind::Corruption {
            self.context.log.event(Level::Error, "corruption", &[("error", error)]);
        }
    }
}

#[inline]
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
