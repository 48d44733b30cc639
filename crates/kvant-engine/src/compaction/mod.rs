//! Which tables to merge next, as pure functions of the tree's shape; the runner does what they
//! say.
//!
//! A [`VersionSummary`] describes the tree, [`pick`] returns the most useful [`CompactionPlan`] for
//! it, [`TreeShape`] says how far it is from the shape it should have, and the [`Simulator`] drives
//! them without a disk.
//!
//! The tree is levelled. The last level holds most of the data; the target of each level above is
//! `level_ratio` times smaller, down to the *base level*, which takes what comes from level 0.
//! Levels between level 0 and the base level are empty. So the targets follow the data (RocksDB
//! calls this dynamic level bytes), and all levels above the last together hold about a ninth of
//! it.
//!
//! Invariants of every plan:
//! 1. Data only moves downward, or is rewritten in place when that removes tombstones or expired
//!    entries from the bottom of the tree. Therefore picking ends when nothing is written.
//! 2. No input is being compacted already, and every table of the output level that shares a user
//!    key with the inputs is an input.
//! 3. A version of a key never gets below an older one: a table of level 0 goes down with or after
//!    the older ones it overlaps.
//! 4. Concurrent plans do not meet. One at a time takes from level 0. Any other one writes only
//!    within the range of its upper input, which no other table of that level shares, and of the
//!    overlapped tables, which are its inputs.
//!
//! Threads: none; callers hold the version they describe.

mod cutter;
mod picker;
mod plan;
pub(crate) mod runner;
mod shape;
#[cfg(test)]
mod simulator;
mod summary;

pub(crate) use cutter::OutputCutter;
pub(crate) use picker::{pick, pick_manual, pick_small, with_overhead};
#[cfg(test)]
pub(crate) use plan::Reason;
pub(crate) use plan::{CompactionPlan, PlanKind, Room};
pub(crate) use shape::TreeShape;
#[cfg(test)]
pub(crate) use simulator::{Simulator, Write};
#[cfg(test)]
pub(crate) use summary::TableSummary;
pub(crate) use summary::{CompactionOptions, VersionSummary};
