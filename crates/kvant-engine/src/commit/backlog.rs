//! How far flushes and compactions are behind, and what follows for writers.
//!
//! What a running job has done counts as it goes: a memtable that is half written counts half, and
//! so do tables of level 0 that are half merged. So the gate moves in small steps while a job runs,
//! instead of closing until it ends.
//!
//! A compaction below level 0 removes no table of level 0, and others follow it before level 0 is
//! compacted. Meanwhile the gate spreads the room that level 0 has left over the bytes of all of
//! them. With a rate that falls with the room, the last writers would wait for seconds
//! (`docs/decisions/0035-room-of-level-0-lasts-through-the-work-below-it.md`).
//!
//! Threads: any; each job notes its own progress.

use super::gate::Position;
use crate::options::Options;
use crate::stats::StallReason;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Resolution of progress: parts of a memtable or table.
const PARTS: f64 = 1024.0;
/// While a job runs, writers that it has slowed down stay so until the load is lower than at the
/// slow mark by this part of the distance to the stop mark: the gate would else open and close with
/// every step of the job.
const OPENS_LATER: f64 = 1.0 / 8.0;
/// Writers are slowed down this part of a memtable before all memtables that may be sealed are, so
/// that the active one is not full before one is flushed.
const SLOWED_EARLIER: f64 = 0.25;

/// Assumed bytes of keys and values by bytes of memory of a memtable; entries have headers and
/// links.
const TABLE_SHARE: f64 = 0.5;

/// What the running jobs have done.
#[derive(Default)]
pub(crate) struct Progress {
    /// Of the oldest sealed memtable.
    pub(crate) flush: JobProgress,
    /// Of the tables of level 0.
    pub(crate) compaction: JobProgress,
}

/// What one kind of job has done.
#[derive(Default)]
pub(crate) struct JobProgress {
    is_running: AtomicBool,
    done_parts: AtomicU64,
    /// Bytes that compactions below level 0 still read before level 0 is compacted; 0 if none runs.
    below_bytes: AtomicU64,
}

impl JobProgress {
    /// A job runs, and has done as much as so many whole memtables or tables.
    pub(crate) fn note(&self, done: f64) {
        self.done_parts.store((done * PARTS) as u64, Ordering::Relaxed);
        self.is_running.store(true, Ordering::Relaxed);
    }

    /// A compaction below level 0 runs. `left_bytes`: still to be read before level 0 is compacted.
    pub(crate) fn note_below(&self, left_bytes: u64) {
        self.below_bytes.store(left_bytes.max(1), Ordering::Relaxed);
        self.note(0.0);
    }

    /// The job has ended: what it has done shows in the tree.
    pub(crate) fn end(&self) {
        self.is_running.store(false, Ordering::Relaxed);
        self.done_parts.store(0, Ordering::Relaxed);
        self.below_bytes.store(0, Ordering::Relaxed);
    }

    fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    fn done(&self) -> f64 {
        self.done_parts.load(Ordering::Relaxed) as f64 / PARTS
    }
}

/// Memtables and tables of level 0, at one moment.
pub(crate) struct Backlog<'a> {
    pub(crate) progress: &'a Progress,
    pub(crate) sealed_count: usize,
    /// How full the active memtable is, from 0 to 1.
    pub(crate) active_share: f64,
    pub(crate) level_0_count: usize,
    /// Compaction can do nothing about level 0.
    pub(crate) level_0_stuck: bool,
}

impl Backlog<'_> {
    /// The position that the gate has to take after `before`.
    pub(crate) fn position(&self, options: &Options, before: Position) -> Position {
        let sealed_max = options.memtables_sealed_max;
        if self.active_share >= 1.0 && self.sealed_count >= sealed_max {
            return Position::Closed { reason: StallReason::Memtables };
        }
        let memtables = self.memtables_position(sealed_max as f64, before);
        let level_0 = self.level_0_position(options, before);
        match (memtables, level_0) {
            // Flushes come first: while they are behind, writers earn by them, at the lower rate.
            (Position::Slowed { reason, earn }, Position::Slowed { earn: other, .. }) => {
                Position::Slowed { reason, earn: earn.min(other) }
            }
            (Position::Open, _) | (_, Position::Closed { .. }) => level_0,
            _ => memtables,
        }
    }

    /// Open without a sealed memtable: no flush would ever earn anything.
    fn memtables_position(&self, sealed_max: f64, before: Position) -> Position {
        if self.sealed_count == 0 {
            return Position::Open;
        }
        let marks = (sealed_max - SLOWED_EARLIER, sealed_max - SLOWED_EARLIER + 1.0);
        let load = self.memtables() + self.active_share;
        position(StallReason::Memtables, load, marks, &self.progress.flush, before)
    }

    /// Open as long as no compaction out of level 0 is due, or none can do anything.
    fn level_0_position(&self, options: &Options, before: Position) -> Position {
        if self.level_0_stuck || self.level_0_count < options.l0_compact_count {
            return Position::Open;
        }
        let marks = (options.l0_slow_count as f64, options.l0_stop_count as f64);
        let (load, job) = (self.level_0(), &self.progress.compaction);
        let below_bytes = job.below_bytes.load(Ordering::Relaxed);
        match position(StallReason::L0Tables, load, marks, job, before) {
            Position::Slowed { reason, .. } if below_bytes > 0 => {
                let room_bytes = (marks.1 - load) * TABLE_SHARE * options.memtable_bytes as f64;
                Position::Slowed { reason, earn: (room_bytes / below_bytes as f64).min(1.0) }
            }
            position => position,
        }
    }

    /// Whether writers are held up soon unless a memtable is flushed.
    pub(crate) fn flush_is_urgent(&self, options: &Options) -> bool {
        2.0 * self.memtables() >= options.memtables_sealed_max as f64
    }

    /// Whether writers are held up soon unless level 0 is compacted.
    pub(crate) fn compaction_is_urgent(&self, options: &Options) -> bool {
        2.0 * self.level_0() >= (options.l0_compact_count + options.l0_slow_count) as f64
    }

    /// Sealed memtables less what is flushed of them.
    fn memtables(&self) -> f64 {
        (self.sealed_count as f64 - self.progress.flush.done()).max(0.0)
    }

    /// Tables of level 0 less what is merged of them. Memtables count, as far as they are full: so
    /// each write adds its part, and nothing jumps when a flush ends.
    fn level_0(&self) -> f64 {
        let tables = (self.level_0_count as f64 - self.progress.compaction.done()).max(0.0);
        tables + self.sealed_count as f64 + self.active_share
    }
}

/// Open below the first mark, closed from the second on, and in between the slower the nearer to
/// the second.
fn position(
    reason: StallReason,
    load: f64,
    (slow, stop): (f64, f64),
    job: &JobProgress,
    before: Position,
) -> Position {
    let stays_slowed = job.is_running() && before.reason() == Some(reason);
    let opens_below = if stays_slowed { slow - (stop - slow) * OPENS_LATER } else { slow };
    if load < opens_below {
        Position::Open
    } else if load < stop {
        Position::Slowed { reason, earn: (stop - load) / (stop - slow) }
    } else {
        Position::Closed { reason }
    }
}

#[cfg(test)]
mod tests;
