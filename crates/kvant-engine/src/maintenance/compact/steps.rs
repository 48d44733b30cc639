//! A merge in steps, for a disk without room for all of its outputs beside all of its inputs.
//!
//! Each step merges one table of the lower level with the upper level's entries of its key range,
//! and puts the outputs in that table's place. Space returns with each step, and the room needed
//! beside the inputs is one lower table and, step by step, what comes from above.
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
use crate::tree::outputs::Outputs;
use crate::version::VersionEdit;
use kvant_base::Result;

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
        let ends: Vec<Option<Vec<u8>>> = lower
            .iter()
            .skip(1)
            .map(|file| Some(file.meta.smallest.user_key.clone()))
            .chain([None])
            .collect();
        let mut from = Vec::new();
        let mut all = Outputs::default();
        for (file, to) in lower.into_iter().zip(ends) {
            let slice = |source| -> MergeSource {
                Box::new(SliceIter::new(source, from.clone(), to.clone()))
            };
            let above = sources(upper_level, upper.clone()).into_iter().map(slice);
            let below = sources(output_level, vec![file.clone()]);
            let outputs = self.write_merged(merging, pace, above.chain(below).collect())?;
            let mut edit = VersionEdit {
                removed: vec![(output_level, file.meta.num)],
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
            drop(file);
            self.tree.remove_obsolete_tables();
            from = to.unwrap_or_default();
        }
        Ok(all)
    }
}
