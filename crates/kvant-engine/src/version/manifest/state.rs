//! The state that the edits of a manifest add up to, checked edit by edit.

use crate::format::{FileNum, SeqNum};
use crate::version::levels::Tree;
use crate::version::{FileMeta, Levels, VersionEdit};
use std::collections::BTreeMap;

/// Existing logs, and the bytes of each that are known to be synced.
pub(crate) type KnownLogs = BTreeMap<FileNum, u64>;

/// The tree and the counters after a number of edits.
#[derive(Clone, Debug)]
pub(crate) struct ManifestState {
    levels: Levels<FileMeta>,
    /// Above the number of every file.
    pub(crate) next_file_num: FileNum,
    /// Largest sequence number in any table.
    pub(crate) last_seq: SeqNum,
    /// Logs with lower numbers are not needed. This one must exist, unless it is 0.
    pub(crate) oldest_wal: FileNum,
    /// From `oldest_wal` on. Logs put into use later may exist too.
    pub(crate) logs: KnownLogs,
}

impl ManifestState {
    /// The state of a new database, whose manifest is file 1.
    pub(crate) fn empty() -> ManifestState {
        ManifestState {
            levels: Levels::default(),
            next_file_num: FileNum(2),
            last_seq: SeqNum(0),
            oldest_wal: FileNum(0),
            logs: KnownLogs::new(),
        }
    }

    pub(crate) fn levels(&self) -> &Levels<FileMeta> {
        &self.levels
    }
}

pub(super) struct StateBuilder {
    tree: Tree<FileMeta>,
    /// Next file number, last sequence number, oldest WAL; `None` before the first edit.
    counters: Option<(FileNum, SeqNum, FileNum)>,
    logs: KnownLogs,
}

impl StateBuilder {
    pub(super) fn new() -> StateBuilder {
        StateBuilder { tree: Tree::empty(), counters: None, logs: KnownLogs::new() }
    }

    /// Applies the next edit. The error says what is wrong; the builder must not be used after it.
    pub(super) fn apply(&mut self, edit: &VersionEdit) -> Result<(), String> {
        let counters = match self.counters {
            Some((next_file_num, last_seq, oldest_wal)) => (
                raised("next file number", next_file_num, edit.next_file_num)?,
                raised("last sequence number", last_seq, edit.last_seq)?,
                raised("oldest WAL", oldest_wal, edit.oldest_wal)?,
            ),
            None => {
                let all = || Some((edit.next_file_num?, edit.last_seq?, edit.oldest_wal?));
                all().ok_or("the first edit lacks a counter")?
            }
        };
        let (next_file_num, last_seq, oldest_wal) = counters;
        if last_seq > SeqNum::MAX || oldest_wal >= next_file_num {
            return Err(format!("an edit sets impossible counters: {counters:?}"));
        }
        if let Some((_, meta)) =
            edit.added.iter().find(|(_, meta)| meta.num >= next_file_num || meta.seq_max > last_seq)
        {
            return Err(format!("an edit adds table {}, which is beyond its counters", meta.num.0));
        }
        for &(num, synced_bytes) in &edit.logs {
            if num >= next_file_num {
                return Err(format!("an edit names log {}, which is beyond its counters", num.0));
            }
            let before_bytes = self.logs.insert(num, synced_bytes).unwrap_or(0);
            if synced_bytes < before_bytes {
                return Err(format!(
                    "an edit lowers the synced bytes of log {} from {before_bytes} to \
                     {synced_bytes}",
                    num.0
                ));
            }
        }
        self.logs.retain(|num, _| *num >= oldest_wal);
        self.tree.apply(edit, |meta, _| Ok(meta.clone()))?;
        self.counters = Some(counters);
        Ok(())
    }

    /// The state; `None` without edits.
    pub(super) fn finish(self) -> Option<ManifestState> {
        let (next_file_num, last_seq, oldest_wal) = self.counters?;
        Some(ManifestState {
            levels: self.tree.into_levels(),
            next_file_num,
            last_seq,
            oldest_wal,
            logs: self.logs,
        })
    }
}

fn raised<N: Copy + Ord + std::fmt::Debug>(
    name: &str,
    before: N,
    after: Option<N>,
) -> Result<N, String> {
    match after {
        Some(after) if after < before => {
            Err(format!("an edit lowers the {name} from {before:?} to {after:?}"))
        }
        Some(after) => Ok(after),
        None => Ok(before),
    }
}
