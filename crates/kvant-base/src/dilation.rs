//! Slows stages of the server's work down for a time, each in proportion to what it takes: causal
//! profiling (Curtsinger and Berger, *Coz*, SOSP 2015). If all stages but one are slowed down by
//! the same factor, then in a time that is measured by that factor they cost what they did, and the
//! one has become faster.
//!
//! [`crate::tag`] tells the stage of each stretch of time between two changes of a thread's tag. At
//! the end of a stretch the thread spins for the part of it that the experiment adds to the stage.
//!
//! Invariants:
//! 1. Without an experiment, [`is_on`] is one relaxed load, and nothing else is called.
//! 2. An experiment ends at its time, whatever happens; no spin lasts longer.
//! 3. A stretch that began before the experiment is not counted, nor is rest, which begins and ends
//!    with `restart`: a thread that waits for another one is delayed by that one already.
//! 4. What a spin takes too long, the next one takes less: sums are exact.
//!
//! Threads: any. Each has its own stretch.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Stages: those of [`crate::tag::Stage`].
pub const STAGE_COUNT: usize = 10;

/// The unit of added time: 10,000 of it double a stage.
pub const UNIT: u32 = 10_000;

/// The time that an experiment adds to each stage, in [`UNIT`] parts of what the stage takes.
pub type Added = [u32; STAGE_COUNT];

/// No experiment.
const NONE: u32 = 0;
/// One is being prepared.
const RESERVED: u32 = u32::MAX;

/// The number of the running experiment.
static EXPERIMENT: AtomicU32 = AtomicU32::new(NONE);
static LAST: AtomicU32 = AtomicU32::new(NONE);
static ADDED: [AtomicU32; STAGE_COUNT] = [const { AtomicU32::new(0) }; STAGE_COUNT];
static UNTIL_NS: AtomicU64 = AtomicU64::new(0);
static CLOCK: OnceLock<fn() -> u64> = OnceLock::new();

/// The current stretch of a thread.
#[derive(Clone, Copy)]
struct Stretch {
    experiment: u32,
    since_ns: u64,
    /// What the thread has yet to spin, in parts of a nanosecond; negative if it has spun too long.
    owed_parts: i64,
}

thread_local! {
    static STRETCH: Cell<Stretch> =
        const { Cell::new(Stretch { experiment: NONE, since_ns: 0, owed_parts: 0 }) };
}

/// Whether an experiment runs.
#[inline]
pub fn is_on() -> bool {
    cfg!(feature = "profiler") && EXPERIMENT.load(Ordering::Relaxed) != NONE
}

/// Begins an experiment of `for_ns` nanoseconds of the monotonic `clock`; `None` if one runs.
/// Returns its number. The process has one clock: the first.
pub fn begin(added: Added, for_ns: u64, clock: fn() -> u64) -> Option<u32> {
    let clock = CLOCK.get_or_init(|| clock);
    let running = EXPERIMENT.load(Ordering::Acquire);
    if running != NONE && running != RESERVED && clock() >= UNTIL_NS.load(Ordering::Relaxed) {
        end(running);
    }
    EXPERIMENT.compare_exchange(NONE, RESERVED, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    for (slot, added) in ADDED.iter().zip(added) {
        slot.store(added, Ordering::Relaxed);
    }
    UNTIL_NS.store(clock().saturating_add(for_ns), Ordering::Relaxed);
    let number = (LAST.fetch_add(1, Ordering::Relaxed) % (RESERVED - 1)) + 1;
    EXPERIMENT.store(number, Ordering::Release);
    Some(number)
}

/// Ends an experiment, if it still runs.
pub fn end(experiment: u32) {
    let (Ok(_) | Err(_)) =
        EXPERIMENT.compare_exchange(experiment, NONE, Ordering::AcqRel, Ordering::Relaxed);
}

/// Ends the thread's stretch, in which it was in the stage with this index, and spins for what is
/// added to it. A stretch that is longer than `longest_ns` counts as rest: some threads wait
/// without naming it.
pub(crate) fn end_stretch(stage: usize, longest_ns: u64) {
    let Some((experiment, clock)) = running() else { return };
    let stretch = STRETCH.get();
    let mut next = Stretch { experiment, since_ns: clock(), owed_parts: 0 };
    let until_ns = UNTIL_NS.load(Ordering::Relaxed);
    if next.since_ns >= until_ns {
        end(experiment);
        return;
    }
    if stretch.experiment == experiment {
        next.owed_parts = stretch.owed_parts;
        let took_ns = next.since_ns.saturating_sub(stretch.since_ns);
        let added = ADDED.get(stage).map_or(0, |added| added.load(Ordering::Relaxed));
        if took_ns <= longest_ns && added > 0 {
            next.owed_parts += (took_ns * u64::from(added)).cast_signed();
            spin(&mut next, until_ns, clock);
        }
    }
    STRETCH.set(next);
}

/// Begins the thread's stretch anew, without the time since the last one.
pub(crate) fn restart() {
    let Some((experiment, clock)) = running() else { return };
    let stretch = STRETCH.get();
    let owed_parts = if stretch.experiment == experiment { stretch.owed_parts } else { 0 };
    STRETCH.set(Stretch { experiment, since_ns: clock(), owed_parts });
}

fn running() -> Option<(u32, fn() -> u64)> {
    let experiment = EXPERIMENT.load(Ordering::Acquire);
    let clock = CLOCK.get()?;
    (experiment != NONE && experiment != RESERVED).then_some((experiment, *clock))
}

/// Spins for what the thread owes. The stretch then begins at its end.
fn spin(stretch: &mut Stretch, until_ns: u64, clock: fn() -> u64) {
    let start_ns = stretch.since_ns;
    let unit = i64::from(UNIT);
    let end_ns = start_ns.saturating_add_signed(stretch.owed_parts / unit).min(until_ns);
    while stretch.since_ns < end_ns && EXPERIMENT.load(Ordering::Relaxed) == stretch.experiment {
        std::hint::spin_loop();
        stretch.since_ns = clock();
    }
    stretch.owed_parts -= (stretch.since_ns - start_ns).cast_signed() * unit;
}
