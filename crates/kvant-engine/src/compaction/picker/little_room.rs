//! The next compaction where there is no room for the one that is picked: the most useful step that
//! fits.
//!
//! It is always a step on the way to the same tree, for it moves data downward: with the levels
//! beneath out of the way, or smaller, what did not fit does.

use super::{Candidate, Picker};
use crate::compaction::plan::{CompactionPlan, Reason, Room};
use crate::compaction::shape::{BOTTOM, TreeShape};
use crate::compaction::summary::{TableSummary, any_busy};
use crate::compaction::{CompactionOptions, VersionSummary};

/// The most useful compaction that fits into `room`: tables full of tombstones first, then level 0.
pub(crate) fn pick_small(
    summary: &VersionSummary<'_>,
    options: &CompactionOptions,
    room: Room,
) -> Option<CompactionPlan> {
    let picker = &Picker { summary, options, shape: &TreeShape::new(summary, options) };
    let groups = picker.level_0_candidates();
    let from_level_0 = groups.iter().filter_map(|group| picker.oldest_of(group, room));
    let deeper = (1..BOTTOM).flat_map(|level| {
        picker.idle(level).filter_map(move |table| picker.candidate(level, table))
    });
    let urgency = |candidate: &Candidate<'_, '_>| {
        let dense =
            |table: &TableSummary<'_>| 2 * table.meta.tombstone_count > table.meta.entry_count;
        (!candidate.upper.iter().any(dense), candidate.level)
    };
    let plans = from_level_0.chain(deeper).map(|candidate| {
        let urgency = urgency(&candidate);
        (urgency, candidate.plan(picker, Reason::LittleRoom))
    });
    plans
        .filter(|(_, plan)| room.fits(plan))
        .min_by_key(|(urgency, plan)| (*urgency, plan.room_bytes))
        .map(|(_, plan)| plan)
}

impl<'s, 'a> Picker<'s, 'a> {
    /// As many of the oldest tables of a group of level 0 as fit into `room`, with what they
    /// overlap.
    fn oldest_of(&self, group: &Candidate<'s, 'a>, room: Room) -> Option<Candidate<'s, 'a>> {
        let is_in_group = |table: &&TableSummary<'a>| {
            let num = table.meta.num;
            group.upper.iter().any(|member| member.meta.num == num)
        };
        let newest_first: Vec<_> =
            self.summary.levels[0].iter().filter(is_in_group).copied().collect();
        let mut chosen = None;
        for from in (0..newest_first.len()).rev() {
            let (newer, oldest) = newest_first.split_at(from);
            // By their numbers, not by their place: after a repair, ranges of sequence numbers
            // overlap.
            let seq_max = oldest.iter().map(|table| table.meta.seq_max).max()?;
            if newer.iter().any(|table| table.meta.seq_min <= seq_max) {
                continue;
            }
            let candidate = self.of_level_0(oldest.to_vec());
            // More tables may need less: tombstones among them remove what would be written.
            if room.fits(&candidate.clone().plan(self, Reason::LittleRoom)) {
                chosen = Some(candidate);
            }
        }
        chosen.filter(|candidate| !any_busy(candidate.lower))
    }

    fn of_level_0(&self, upper: Vec<TableSummary<'a>>) -> Candidate<'s, 'a> {
        let first = upper.iter().map(TableSummary::first).min().unwrap_or_default();
        let last = upper.iter().map(TableSummary::last).max().unwrap_or_default();
        let output_level = self.shape.l0_output_level;
        Candidate {
            level: 0,
            upper,
            output_level,
            lower: self.summary.overlapping(output_level, first, last),
        }
    }
}
