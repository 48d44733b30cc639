//! A merge in steps, for a disk without room for all of its outputs beside all of its inputs.
//!
//! Each step merges some neighbours of the lower level, together no larger than the largest table
//! there, with the upper level's entries of their key range, and puts the outputs in their place.
//! Space returns with each step, and the room needed beside the inputs is one lower table and, step
//! by step, what comes from above and the edits. Steps of single tables would leave ever smaller
//! ones, and an edit for each.
//!
//! Invariants:
//! 1. the upper tables stay in the tree until the last step. Until then, both levels hold the
//!    entries that have been merged: readers find the upper ones first, and later merges drop one
//!    of the two. Tombstones hide the same entries as before;
//! 2. the tree is whole after each step: after a failure the steps can be repeated.

use super::{Inputs, Merging, sources};
use crate::iter::{MergeSource, SliceIter};
use crate::maintenance::Maintenance;
use crate::maintenance::pace::Pace;
use crate::table::Table;
use crate::tree::outputs::Outputs;
use crate::version::{TableFile, VersionEdit};
use kvant_base::Result;
use std::sync::Arc;

impl Maintenance {
    /// Merges `inputs`, of two levels, and installs the outcome.
    pub(super) fn merge_in_steps(
        &self,
        merging: &Merging<'_>,
        pace: &mut Pace<'_>,
        inputs: Inputs,
    ) -> Result<Outputs> {
        let mut inputs = inputs.into_iter();
        let (Some((upper_level, upper)), Some((output_level, lower))) =
            (inputs.next(), inputs.next())
        else {
            return Ok(Outputs::default());
        };
        let mut from = Vec::new();
        let mut all = Outputs::default();
        let mut groups = neighbours(lower).into_iter().peekable();
        while let Some(group) = groups.next() {
            let to = groups.peek().map(|next| next[0].meta.smallest.user_key.clone());
            let slice = |source| -> MergeSource {
                Box::new(SliceIter::new(source, from.clone(), to.clone()))
            };
            let above = sources(upper_level, upper.clone()).into_iter().map(slice);
            let below = sources(output_level, group.clone());
            let outputs = self.write_merged(merging, pace, above.chain(below).collect())?;
            let mut edit = VersionEdit {
                removed: group.iter().map(|file| (output_level, file.meta.num)).collect(),
                added: outputs.added(output_level),
                ..VersionEdit::default()
            };
            if to.is_none() {
                let upper = upper.iter().map(|file| (upper_level, file.meta.num));
                edit.removed.extend(upper);
            }
            self.install_compaction(edit, &outputs.tables)?;
            all.written_bytes += outputs.written_bytes;
            all.tables.extend(outputs.tables);
            drop(group);
            self.tree.remove_obsolete_tables();
            from = to.unwrap_or_default();
        }
        Ok(all)
    }
}

/// The tables of a level, in groups for one step each.
fn neighbours(tables: Vec<Arc<TableFile<Table>>>) -> Vec<Vec<Arc<TableFile<Table>>>> {
    let bytes_max = tables.iter().map(|table| table.meta.file_bytes).max().unwrap_or(0);
    let mut groups: Vec<Vec<_>> = Vec::new();
    let mut group_bytes = 0;
    for table in tables {
        let bytes = table.meta.file_bytes;
        match groups.last_mut() {
            Some(group) if group_bytes + bytes <= bytes_max => {
                group.push(table);
                group_bytes += bytes;
            }
            _ => {
                groups.push(vec![table]);
                group_bytes = bytes;
            }
        }
    }
    groups
}
