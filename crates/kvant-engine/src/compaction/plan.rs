//! What one compaction is to do.

use crate::format::FileNum;

/// Why a compaction is done, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// Level 0 has too many tables for reads and writes to stay fast.
    L0Count,
    /// A level is over its target.
    LevelSize,
    /// Too much data above the last level, which may hide as much in it.
    SpaceAmplification,
    /// A table holds more tombstones than data.
    Tombstones,
    /// Entries of a table have expired.
    Expiry,
    /// There is no room for what is more urgent.
    LittleRoom,
    /// Somebody asked for it.
    Manual,
}

impl Reason {
    /// The name used in statistics, events and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::L0Count => "l0_count",
            Reason::LevelSize => "level_size",
            Reason::SpaceAmplification => "space_amplification",
            Reason::Tombstones => "tombstones",
            Reason::Expiry => "expiry",
            Reason::LittleRoom => "little_room",
            Reason::Manual => "manual",
        }
    }
}

/// How a compaction gets from its inputs to its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PlanKind {
    /// The inputs change their level as they are: nothing is read or written.
    Move,
    /// The inputs are merged into new tables.
    Merge,
    /// The inputs go, and nothing replaces them: no reader can see any of their entries, nor what
    /// they hide.
    Drop,
}

impl PlanKind {
    /// The name used in events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PlanKind::Move => "move",
            PlanKind::Merge => "merge",
            PlanKind::Drop => "drop",
        }
    }
}

/// One compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompactionPlan {
    pub(crate) reason: Reason,
    pub(crate) kind: PlanKind,
    /// Levels, ascending, and the tables of each in key order. A merge has at most two levels.
    pub(crate) inputs: Vec<(usize, Vec<FileNum>)>,
    /// Where the inputs or the merged tables go. Without meaning for a drop.
    pub(crate) output_level: usize,
    /// No table beneath the output shares a user key with the inputs' range: tombstones that no
    /// snapshot needs can go.
    pub(crate) bottommost: bool,
    /// Tables of the level beneath the output within the inputs' range, in key order: where to cut
    /// the outputs. See [`super::OutputCutter`].
    pub(crate) grandparents: Vec<FileNum>,
    /// Bytes of all inputs.
    pub(crate) input_bytes: u64,
    /// Space that it needs at most at one time when it is done in steps: what comes from the upper
    /// level, and the largest table of the lower one.
    pub(crate) room_bytes: u64,
    /// As `room_bytes`, but where all that comes from above are tombstones: if each removes an
    /// entry below.
    pub(crate) room_hoped_bytes: u64,
}

/// What there is to compact with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// Whether to try what needs more, unless tombstones remove it.
    pub(crate) is_hopeful: bool,
}

impl Room {
    pub(crate) fn fits(self, plan: &CompactionPlan) -> bool {
        let needed_bytes = if self.is_hopeful { plan.room_hoped_bytes } else { plan.room_bytes };
        needed_bytes <= self.bytes
    }
}
