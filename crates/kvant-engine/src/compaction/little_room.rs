//! The choice of a compaction when the disk has no room for the one that [`super::pick`] returns:
//! the most useful step that fits.
//!
//! Such a step moves data downward, so it leads to the same tree. Once the levels beneath are
//! smaller, the compaction that did not fit does.

use super::candidate::{Candidate, Planner};
use super::plan::{CompactionPlan, Reason, Room};
use super::shape::BOTTOM;
use super::summary::{CompactionOptions, TableSummary, VersionSummary, any_busy};

/// The most useful compaction that fits into `room`: tables full of tombstones first, then level 0.
pub(crate) fn pick_small(
    summary: &VersionSummary<'_>,
    options: &CompactionOptions,
    room: Room,
) -> Option<CompactionPlan> {
    let planner = &Planner::new(summary, options);
    let groups = planner.level_0_candidates();
    let from_level_0 = groups.iter().filter_map(|group| planner.oldest_of(group, room));
    let deeper = (1..BOTTOM).flat_map(|level| {
        planner.idle(level).filter_map(move |table| planner.candidate(level, table))
    });
    let plans = from_level_0.chain(deeper).map(|candidate| {
        let has_tombstones = candidate.upper.iter().any(TableSummary::is_mostly_tombstones);
        let rank = (!has_tombstones, candidate.level);
        (rank, candidate.plan(planner, Reason::LittleRoom))
    });
    plans
        .filter(|(_, plan)| room.fits(plan))
        .min_by_key(|(rank, plan)| (*rank, plan.room_bytes))
        .map(|(_, plan)| plan)
}

impl<'s, 'a> Planner<'s, 'a> {
    /// As many of the oldest tables of a level-0 group as fit into `room` with what they overlap.
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
            // By sequence numbers, not by position: after a repair, those of level-0 tables may
            // overlap.
            let seq_max = oldest.iter().map(|table| table.meta.seq_max).max()?;
            if newer.iter().any(|table| table.meta.seq_min <= seq_max) {
                continue;
            }
            let candidate = self.of_level_0(oldest.to_vec());
            // More tables may need less room: their tombstones remove entries.
            if room.fits(&candidate.clone().plan(self, Reason::LittleRoom)) {
                chosen = Some(candidate);
            }
        }
        chosen.filter(|candidate| !any_busy(candidate.lower))
    }
}
