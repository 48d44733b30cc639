//! Concatenates tables that do not overlap.

use crate::cursor::{InternalIterator, StoredBlock};
use crate::format::InternalKeyRef;
use crate::version::{TableFile, Version};
use kvant_base::Result;
use std::sync::Arc;

/// Tables in key order that share no user key.
pub(crate) enum TableRun<T> {
    /// All tables of a deeper level, which the version keeps alive.
    Level(Arc<Version<T>>, usize),
    /// Some tables of one level: the inputs of a compaction.
    Tables(Vec<Arc<TableFile<T>>>),
}

impl<T> TableRun<T> {
    fn tables(&self) -> &[Arc<TableFile<T>>] {
        match self {
            TableRun::Level(version, level) => version.tables(*level),
            TableRun::Tables(tables) => tables,
        }
    }

    /// Index of the first table that may contain entries at or after `target`.
    fn first_at(&self, target: InternalKeyRef<'_>) -> usize {
        match self {
            TableRun::Level(version, level) => version.first_table_at(*level, target),
            TableRun::Tables(tables) => {
                tables.partition_point(|table| table.meta.largest.as_ref() < target)
            }
        }
    }
}

/// The concatenation of a run. A cursor over a table exists only while the iterator is in that
/// table.
pub(crate) struct LevelIter<T, I, F> {
    run: TableRun<T>,
    open: F,
    /// Index of the current table in the run, and a cursor over it.
    current: Option<(usize, I)>,
}

impl<T, I, F> LevelIter<T, I, F>
where
    I: InternalIterator,
    F: FnMut(&Arc<TableFile<T>>) -> Result<I>,
{
    /// An iterator over `run`; `open` makes a cursor over a table.
    pub(crate) fn new(run: TableRun<T>, open: F) -> LevelIter<T, I, F> {
        LevelIter { run, open, current: None }
    }

    /// Positions in the table at `index` with `seek`, or at the first entry of the tables after it
    /// if `seek` finds none.
    fn enter(&mut self, mut index: usize, seek: impl FnOnce(&mut I) -> Result<()>) -> Result<()> {
        let mut cursor = match self.current.take() {
            Some((open, cursor)) if open == index => Some(cursor),
            _ => None,
        };
        let mut seek = Some(seek);
        while let Some(table) = self.run.tables().get(index) {
            let mut cursor = match cursor.take() {
                Some(cursor) => cursor,
                None => (self.open)(table)?,
            };
            match seek.take() {
                Some(seek) => seek(&mut cursor)?,
                None => cursor.seek_to_first()?,
            }
            if cursor.valid() {
                self.current = Some((index, cursor));
                return Ok(());
            }
            index += 1;
        }
        Ok(())
    }

    fn cursor(&self) -> &I {
        &self.current.as_ref().expect("the iterator is valid, so a table is open").1
    }
}

impl<T, I, F> InternalIterator for LevelIter<T, I, F>
where
    T: Send + Sync,
    I: InternalIterator,
    F: FnMut(&Arc<TableFile<T>>) -> Result<I> + Send,
{
    fn valid(&self) -> bool {
        self.current.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.enter(0, |cursor| cursor.seek_to_first())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.enter(self.run.first_at(target), |cursor| cursor.seek(target))
    }

    fn next(&mut self) -> Result<()> {
        let Some((index, cursor)) = &mut self.current else {
            return Ok(());
        };
        match cursor.next() {
            Ok(()) if cursor.valid() => Ok(()),
            Ok(()) => {
                let following = *index + 1;
                self.current = None;
                self.enter(following, |cursor| cursor.seek_to_first())
            }
            Err(error) => {
                self.current = None;
                Err(error)
            }
        }
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.cursor().key()
    }

    fn value(&self) -> &[u8] {
        self.cursor().value()
    }

    fn own_block(&self) -> Option<StoredBlock<'_>> {
        self.cursor().own_block()
    }
}

#[cfg(test)]
mod tests;
