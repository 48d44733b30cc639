//! The state that the edits of a manifest add up to, checked edit by edit.

use crate::format::{FileNum, SeqNum};
use crate::version::levels::Tree;
use crate::version::{FileMeta, Levels, VersionEdit};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Existing logs, and the bytes of each that are known to be synced.
pub(crate) type KnownLogs = BTreeMap<FileNum, u64>;

/// The tree and the counters after a number of edits.
#[derive(Clone, Debug)]
pub(crate) struct ManifestState {
    tree: Tree<FileMeta>,
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
        ManifestState::new(FileNum(2), SeqNum(0), FileNum(0))
    }

    fn new(next_file_num: FileNum, last_seq: SeqNum, oldest_wal: FileNum) -> ManifestState {
        let (tree, logs) = (Tree::empty(), KnownLogs::new());
        ManifestState { tree, next_file_num, last_seq, oldest_wal, logs }
    }

    pub(crate) fn levels(&self) -> &Levels<FileMeta> {
        self.tree.levels()
    }

    /// The state after the first edit, which must have all counters.
    pub(super) fn first(edit: &VersionEdit) -> Result<ManifestState, String> {
        let new =
            || Some(ManifestState::new(edit.next_file_num?, edit.last_seq?, edit.oldest_wal?));
        let mut state = new().ok_or("the first edit lacks a counter")?;
        state.apply(edit)?;
        Ok(state)
    }

    /// Applies an edit. The error says what is wrong; the state must not be used after it.
    pub(super) fn apply(&mut self, edit: &VersionEdit) -> Result<(), String> {
        raise("next file number", &mut self.next_file_num, edit.next_file_num)?;
        raise("last sequence number", &mut self.last_seq, edit.last_seq)?;
        raise("oldest WAL", &mut self.oldest_wal, edit.oldest_wal)?;
        let counters = (self.next_file_num, self.last_seq, self.oldest_wal);
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
        self.tree.apply(edit, |meta, _| Ok(meta.clone()))
    }
}

fn raise<N: Copy + Ord + Debug>(
    name: &str,
    counter: &mut N,
    after: Option<N>,
) -> Result<(), String> {
    match after {
        Some(after) if after < *counter => {
            Err(format!("an edit lowers the {name} from {counter:?} to {after:?}"))
        }
        _ => {
            *counter = after.unwrap_or(*counter);
            Ok(())
        }
    }
}
