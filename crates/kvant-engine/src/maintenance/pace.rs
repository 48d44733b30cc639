//! How flushes and compactions share the CPU with requests, and tell the gate how far they are.
//!
//! After each step of about 0.1 ms they give way: whatever else is due on their CPU runs first, and
//! they get less than the share that their niceness gives them. Work that writers wait for, or will
//! soon, is urgent and does not give way: nothing starves it. While background work is paused, they
//! rest.
//!
//! Threads: belongs to the thread of a task.

use crate::commit::admission::Admission;
use crate::context::Context;
use crate::stats::StallReason;

/// Work of a step, in bytes of entries: 0.05 to 0.15 ms with LZ4.
const STEP_BYTES: usize = 16 << 10;
/// What an entry costs beside its bytes, in bytes.
const ENTRY_BYTES: usize = 64;

/// A job that writers may wait for.
#[derive(Clone, Copy)]
pub(super) enum Work {
    Flush,
    /// `until_level_0_bytes`: what compactions below level 0 read, this one included, before a full
    /// level 0 is compacted.
    Compaction {
        level_0_count: usize,
        input_bytes: u64,
        until_level_0_bytes: u64,
    },
}

/// The progress of one job. Noted until it is dropped.
pub(super) struct Pace<'a> {
    context: &'a Context,
    admission: &'a Admission,
    work: Work,
    /// The part of the job that comes before the first entry passes, and what is done of it.
    head_share: f64,
    head_done: f64,
    entry_count: u64,
    passed_count: u64,
    step_bytes: usize,
}

impl<'a> Pace<'a> {
    /// `entry_count`: the entries of all inputs.
    pub(super) fn new(
        context: &'a Context,
        admission: &'a Admission,
        work: Work,
        entry_count: u64,
    ) -> Pace<'a> {
        let (head_share, head_done) = (0.0, 0.0);
        let (passed_count, step_bytes) = (0, 0);
        let pace = Pace {
            context,
            admission,
            work,
            head_share,
            head_done,
            entry_count,
            passed_count,
            step_bytes,
        };
        pace.note();
        pace
    }

    /// A part of the job that comes before the first entry passes, and costs as much as work on
    /// `head_bytes`, beside entries of `data_bytes`. Returns its share of the job.
    pub(super) fn begin_head(&mut self, head_bytes: u64, data_bytes: u64) -> f64 {
        let all_bytes = head_bytes + data_bytes + self.entry_count * ENTRY_BYTES as u64;
        self.head_share = head_bytes as f64 / all_bytes.max(1) as f64;
        self.head_share
    }

    /// Ends a step of that part, `step_share` of it. Returns how much of it was not done yet.
    pub(super) fn pass_head(&mut self, step_share: f64) -> f64 {
        let step_share = step_share.min(1.0 - self.head_done);
        self.head_done += step_share;
        self.end_step();
        step_share
    }

    /// Counts an entry of `bytes`, and gives way at the end of a step.
    #[inline]
    pub(super) fn passed(&mut self, bytes: usize) {
        self.passed_count += 1;
        self.step_bytes += bytes + ENTRY_BYTES;
        if self.step_bytes >= STEP_BYTES {
            self.end_step();
        }
    }

    fn end_step(&mut self) {
        self.step_bytes = 0;
        self.note();
        self.admission.update_gate();
        let is_urgent = match self.work {
            Work::Flush => self.admission.flush_is_urgent(),
            Work::Compaction { .. } => self.admission.compaction_is_urgent(),
        };
        if !is_urgent {
            self.context.env.spawner.give_way();
        }
        self.context.rest();
    }

    fn note(&self) {
        let passed_share = (self.passed_count as f64 / self.entry_count.max(1) as f64).min(1.0);
        let share = self.head_share * self.head_done + (1.0 - self.head_share) * passed_share;
        match self.work {
            Work::Flush => self.admission.progress.flush.note(share),
            Work::Compaction { level_0_count: 0, input_bytes, until_level_0_bytes } => {
                let all_bytes = until_level_0_bytes.max(input_bytes);
                let left_bytes = all_bytes as f64 - share * input_bytes as f64;
                self.admission.progress.compaction.note_below(left_bytes as u64);
            }
            Work::Compaction { level_0_count, .. } => {
                self.admission.progress.compaction.note(share * level_0_count as f64);
            }
        }
    }
}

impl Drop for Pace<'_> {
    fn drop(&mut self) {
        match self.work {
            Work::Flush => self.admission.progress.flush.end(),
            Work::Compaction { .. } => self.admission.progress.compaction.end(),
        }
        self.admission.update_gate();
    }
}

impl Work {
    /// The stall that the job ends.
    pub(super) fn ends(self) -> StallReason {
        match self {
            Work::Flush => StallReason::Memtables,
            Work::Compaction { .. } => StallReason::L0Tables,
        }
    }
}
