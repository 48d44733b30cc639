//! Compaction: which tables to merge next, as pure functions of the shape of the tree.
//!
//! The tree is levelled, with dynamic level bytes as in RocksDB: the target of each level is
//! `level_ratio` times smaller than that of the next, up to the *base level*, which receives the
//! output of level 0; the levels between level 0 and the base level are empty.
//!
//! Invariants of every plan:
//! 1. Data moves only downward, or is rewritten in place if that removes tombstones or expired
//!    entries from the bottom of the tree. Therefore picking ends when nothing is written.
//! 2. No input is being compacted already, and every table of the output level that shares a user
//!    key with the inputs is an input.
//! 3. A version of a key never moves below an older one: a table of level 0 moves with or after the
//!    older tables that it overlaps.
//! 4. Concurrent plans do not conflict. At most one takes from level 0. Any other one writes only
//!    within the range of its upper input, which no other table of that level shares, and of the
//!    overlapped tables, which are its inputs.
//!
//! Threads: none; callers hold the version that they describe.

mod candidate;
mod cutter;
mod little_room;
mod picker;
mod plan;
mod shape;
mod summary;

pub(crate) use candidate::with_overhead;
pub(crate) use cutter::OutputCutter;
pub(crate) use little_room::pick_small;
pub(crate) use picker::{expiry_wait_ms, pick, pick_manual};
pub(crate) use plan::{CompactionPlan, PlanKind, Room};
pub(crate) use shape::TreeShape;
pub(crate) use summary::{CompactionOptions, VersionSummary};

#[cfg(test)]
mod test_support {
    pub(super) mod simulator;
}
