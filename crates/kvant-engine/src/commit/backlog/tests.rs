use super::*;
use crate::commit::gate::Gate;
use crate::events::EventSink;
use kvant_base::Events;
use kvant_base::log::NoLog;
use kvant_env::testing::MockClock;
use std::sync::Arc;

fn options() -> Options {
    Options::for_memory(384 << 20)
}

fn backlog(progress: &Progress) -> Backlog<'_> {
    Backlog { progress, sealed_count: 0, active_share: 0.0, level_0_count: 0, level_0_stuck: false }
}

fn slowed(position: Position) -> (StallReason, f64) {
    match position {
        Position::Slowed { reason, earn } => (reason, earn),
        other => panic!("{other:?}"),
    }
}

#[test]
fn writers_pass_freely_below_the_marks() {
    let (options, progress) = (options(), Progress::default());
    let below = Backlog { sealed_count: 2, active_share: 0.7, ..backlog(&progress) };
    assert_eq!(below.position(&options, Position::Open), Position::Open);
    let below = Backlog { level_0_count: 7, active_share: 0.9, ..backlog(&progress) };
    assert_eq!(below.position(&options, Position::Open), Position::Open);
}

#[test]
fn what_a_running_job_has_done_counts() {
    let (options, progress) = (options(), Progress::default());
    let tables = Backlog { level_0_count: 12, ..backlog(&progress) };
    assert_eq!(slowed(tables.position(&options, Position::Open)), (StallReason::L0Tables, 0.5));
    progress.compaction.note(2.0);
    assert_eq!(slowed(tables.position(&options, Position::Open)), (StallReason::L0Tables, 0.75));
    progress.compaction.note(12.0);
    assert_eq!(tables.position(&options, Position::Open), Position::Open);

    let memtables = Backlog { sealed_count: 3, active_share: 0.5, ..backlog(&progress) };
    assert_eq!(
        slowed(memtables.position(&options, Position::Open)),
        (StallReason::Memtables, 0.25)
    );
    progress.flush.note(0.5);
    assert_eq!(
        slowed(memtables.position(&options, Position::Open)),
        (StallReason::Memtables, 0.75)
    );
    progress.flush.end();
    progress.compaction.end();
    let both = Backlog { sealed_count: 3, level_0_count: 10, ..backlog(&progress) };
    let slow = slowed(both.position(&options, Position::Open));
    assert_eq!(slow, (StallReason::Memtables, 0.375));
}

/// Regression: with a full memtable that could be sealed, and few tables allowed, the gate waited
/// for credits of a job that was not due.
#[test]
fn nobody_waits_for_a_job_that_is_not_due() {
    let options =
        Options { memtables_sealed_max: 1, l0_compact_count: 2, l0_slow_count: 2, ..options() };
    let progress = Progress::default();
    let full = Backlog { active_share: 1.0, level_0_count: 1, ..backlog(&progress) };
    assert_eq!(full.position(&options, Position::Open), Position::Open);
}

#[test]
fn a_full_memtable_that_cannot_be_sealed_closes_whatever_the_progress() {
    let (options, progress) = (options(), Progress::default());
    progress.flush.note(0.9);
    let full = Backlog { sealed_count: 3, active_share: 1.0, ..backlog(&progress) };
    assert_eq!(
        full.position(&options, Position::Open),
        Position::Closed { reason: StallReason::Memtables }
    );
}

#[test]
fn a_level_0_that_is_stuck_holds_nobody() {
    let (options, progress) = (options(), Progress::default());
    let stuck = Backlog { level_0_count: 100, level_0_stuck: true, ..backlog(&progress) };
    assert_eq!(stuck.position(&options, Position::Open), Position::Open);
}

#[test]
fn a_running_job_opens_the_gate_below_its_slow_mark_only() {
    let (options, progress) = (options(), Progress::default());
    let tables = Backlog { level_0_count: 9, ..backlog(&progress) };
    progress.compaction.note(0.5);
    let slow = tables.position(&options, Position::Open);
    progress.compaction.note(1.5);
    assert_eq!(tables.position(&options, Position::Open), Position::Open);
    assert_eq!(slowed(tables.position(&options, slow)), (StallReason::L0Tables, 1.0625));
    progress.compaction.note(2.5);
    assert_eq!(tables.position(&options, slow), Position::Open);
    // Without a job nothing would ever be earned.
    progress.compaction.end();
    let tables = Backlog { level_0_count: 7, active_share: 0.9, ..backlog(&progress) };
    assert_eq!(tables.position(&options, slow), Position::Open);
}

/// A writer, flushes and compactions of fixed speeds, in ticks of a millisecond.
struct Fill {
    options: Options,
    gate: Gate,
    progress: Progress,
    active_bytes: u64,
    sealed_count: usize,
    level_0_count: usize,
    flush: Run,
    compaction: Run,
    merged_count: usize,
    compaction_count: usize,
    /// Of a compaction below level 0.
    deep_bytes: u64,
}

/// A job: its bytes, and the pause of its last sync.
#[derive(Default)]
struct Run {
    total_bytes: u64,
    done_bytes: u64,
    pause_ticks: u64,
}

impl Run {
    /// A tick of a running job; true when it has ended.
    fn tick(&mut self, bytes: u64, sync_ticks: u64) -> bool {
        if self.done_bytes < self.total_bytes {
            self.done_bytes = (self.done_bytes + bytes).min(self.total_bytes);
            self.pause_ticks = sync_ticks;
            return false;
        }
        self.pause_ticks = self.pause_ticks.saturating_sub(1);
        self.pause_ticks == 0
    }

    fn is_working(&self) -> bool {
        self.done_bytes < self.total_bytes
    }

    fn share(&self) -> f64 {
        self.done_bytes as f64 / self.total_bytes as f64
    }
}

const VALUE_BYTES: usize = 5_000;
const SYNC_TICKS: u64 = 20;
const DEEP_BYTES: u64 = 700_000_000;

impl Fill {
    fn new(deep_bytes: u64) -> Fill {
        let options = options();
        let clock = Arc::new(MockClock::new(0));
        let events = EventSink::new(clock.clone(), Events::new(1));
        Fill {
            gate: Gate::new(clock, Arc::new(NoLog), events, options.memtable_bytes / 8),
            options,
            progress: Progress::default(),
            active_bytes: 0,
            sealed_count: 0,
            level_0_count: 0,
            flush: Run::default(),
            compaction: Run::default(),
            merged_count: 0,
            compaction_count: 0,
            deep_bytes,
        }
    }

    fn update_gate(&self) {
        let memtable_bytes = self.options.memtable_bytes as f64;
        let backlog = Backlog {
            sealed_count: self.sealed_count,
            active_share: (self.active_bytes as f64 / memtable_bytes).min(1.0),
            level_0_count: self.level_0_count,
            ..backlog(&self.progress)
        };
        self.gate.update(|before| backlog.position(&self.options, before));
    }

    /// Writes up to `bytes`; returns those that passed.
    fn write(&mut self, bytes: u64) -> u64 {
        let mut passed_bytes = 0;
        while passed_bytes < bytes {
            if self.active_bytes >= self.options.memtable_bytes {
                if self.sealed_count < self.options.memtables_sealed_max {
                    self.sealed_count += 1;
                    self.active_bytes = 0;
                }
                self.update_gate();
            }
            if self.gate.admit(VALUE_BYTES).is_err() {
                break;
            }
            self.active_bytes += VALUE_BYTES as u64;
            passed_bytes += VALUE_BYTES as u64;
        }
        passed_bytes
    }

    fn tick_flush(&mut self, bytes: u64) {
        if self.sealed_count == 0 {
            return;
        }
        self.flush.total_bytes = self.options.memtable_bytes;
        let is_working = self.flush.is_working();
        if self.flush.tick(bytes, SYNC_TICKS) {
            self.flush = Run::default();
            self.progress.flush.end();
            self.sealed_count -= 1;
            self.level_0_count += 1;
            self.update_gate();
        } else {
            self.progress.flush.note(self.flush.share());
            self.update_gate();
            if is_working {
                self.gate.earn(StallReason::Memtables, bytes);
            }
        }
    }

    /// Level 0 is merged with 240 MB of level 1; after each such merge, deeper levels.
    fn tick_compaction(&mut self, bytes: u64) {
        if self.compaction.total_bytes == 0 {
            if self.level_0_count < self.options.l0_compact_count {
                return;
            }
            let is_deep = self.compaction_count % 2 == 1;
            self.compaction_count += 1;
            self.merged_count = if is_deep { 0 } else { self.level_0_count };
            self.compaction.total_bytes = if is_deep {
                self.deep_bytes
            } else {
                self.merged_count as u64 * self.options.memtable_bytes + 240_000_000
            };
        }
        let is_working = self.compaction.is_working();
        if self.compaction.tick(bytes, SYNC_TICKS) {
            self.compaction = Run::default();
            self.level_0_count -= self.merged_count;
            self.progress.compaction.end();
            self.update_gate();
        } else {
            match self.merged_count {
                0 => self
                    .progress
                    .compaction
                    .note_below(self.compaction.total_bytes - self.compaction.done_bytes),
                count => self.progress.compaction.note(self.compaction.share() * count as f64),
            }
            self.update_gate();
            if is_working {
                self.gate.earn(StallReason::L0Tables, bytes);
            }
        }
    }
}

/// The longest time, in ticks, in which nothing passed; and all bytes that passed.
fn run(mut fill: Fill, ticks: u64, write: u64, flush: u64, merge: u64) -> (u64, u64) {
    let (mut held, mut held_max, mut bytes) = (0, 0, 0);
    for _ in 0..ticks {
        let passed_bytes = fill.write(write);
        bytes += passed_bytes;
        held = if passed_bytes == 0 { held + 1 } else { 0 };
        held_max = held_max.max(held);
        fill.tick_flush(flush);
        fill.tick_compaction(merge);
        assert!(fill.level_0_count <= 2 * fill.options.l0_stop_count);
    }
    (held_max, bytes)
}

#[test]
fn writers_of_large_values_are_slowed_and_never_held_for_long() {
    // Compaction is the bottleneck, then flushes, then neither.
    for (write, flush, merge) in [(300_000, 200_000, 150_000), (300_000, 80_000, 400_000)] {
        let (held_max, bytes) = run(Fill::new(DEEP_BYTES), 60_000, write, flush, merge);
        assert!(held_max <= 2 * SYNC_TICKS, "held for {held_max} ticks");
        let least = flush.min(merge / 5) * 60_000 / 2;
        assert!(bytes > least, "{bytes} bytes passed, expected more than {least}");
    }
    assert_eq!(run(Fill::new(DEEP_BYTES), 10_000, 20_000, 200_000, 400_000), (0, 10_000 * 20_000));
}

/// Regression: with 100 million records a put waited for 3.7 s for compactions below level 0.
/// Writers got less the nearer they were to the stop mark, in the end almost nothing.
#[test]
fn writers_are_slowed_evenly_through_a_long_compaction_below_level_0() {
    let (held_max, bytes) = run(Fill::new(4_000_000_000), 120_000, 300_000, 200_000, 300_000);
    assert!(held_max <= 2 * SYNC_TICKS, "held for {held_max} ticks");
    assert!(bytes > 120_000 * 10_000, "{bytes} bytes passed");
}
