//! The description of one compaction.

use crate::format::FileNum;
use kvant_base::named_enum;

named_enum! {
    /// Why a compaction is done, most urgent first. Named in statistics, events and logs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub(crate) enum Reason {
        /// Level 0 has too many tables for fast reads and writes.
        L0Count = "l0_count",
        /// A level exceeds its target.
        LevelSize = "level_size",
        /// Too much data above the last level, which may shadow as much in it.
        SpaceAmplification = "space_amplification",
        /// Most entries of a table are tombstones.
        Tombstones = "tombstones",
        /// Entries of a table have expired.
        Expiry = "expiry",
        /// The disk has no room for a more urgent compaction.
        LittleRoom = "little_room",
        /// Requested by the operator.
        Manual = "manual",
    }
}

named_enum! {
    /// How a compaction gets from its inputs to its outputs. Named in events.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub(crate) enum PlanKind {
        /// The inputs change their level; nothing is read or written.
        Move = "move",
        /// The inputs are merged into new tables.
        Merge = "merge",
        /// The inputs are removed without replacement: no reader can see any of their entries, nor
        /// anything that they shadow.
        Drop = "drop",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompactionPlan {
    pub(crate) reason: Reason,
    pub(crate) kind: PlanKind,
    /// Levels, ascending, and the tables of each in key order. A merge has at most two levels.
    pub(crate) inputs: Vec<(usize, Vec<FileNum>)>,
    /// The new level of the inputs or of the merged tables. Unused by a drop.
    pub(crate) output_level: usize,
    /// No table beneath the output overlaps the range of the inputs: tombstones that no snapshot
    /// needs can be dropped.
    pub(crate) bottommost: bool,
    /// Tables of the level beneath the output within the range of the inputs, in key order. See
    /// [`super::OutputCutter`].
    pub(crate) grandparents: Vec<FileNum>,
    pub(crate) input_bytes: u64,
    /// Most space needed at one time by a merge in steps: the tables of the upper level, the
    /// largest table of the lower one, and the edits of all steps.
    pub(crate) room_bytes: u64,
    /// As `room_bytes`, assuming that each tombstone of the upper level removes an entry, if there
    /// are only tombstones.
    pub(crate) room_hoped_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// Whether to assume that tombstones remove entries.
    pub(crate) is_hopeful: bool,
}

impl Room {
    pub(crate) fn fits(self, plan: &CompactionPlan) -> bool {
        let needed_bytes = if self.is_hopeful { plan.room_hoped_bytes } else { plan.room_bytes };
        needed_bytes <= self.bytes
    }
}
