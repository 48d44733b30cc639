//! Stages that are slowed down, on threads whose time the tests move: each reading of the clock
//! takes some nanoseconds, and work takes what the test says.
#![cfg(feature = "profiler")]

use kvant_base::dilation::{self, Added, STAGE_COUNT, UNIT};
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::wait::{self, WaitKind};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a reading of the clock takes, as on a machine.
const READING_NS: u64 = 23;
const LONG_NS: u64 = 60_000_000_000;

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(1) };
}

fn clock() -> u64 {
    work(READING_NS);
    NOW_NS.get()
}

fn work(ns: u64) {
    NOW_NS.set(NOW_NS.get() + ns);
}

/// The process has one experiment at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn added(stages: &[(Stage, u32)]) -> Added {
    let mut added = [0; STAGE_COUNT];
    for (stage, parts) in stages {
        added[*stage as usize] = *parts;
    }
    added
}

fn all_but(stage: Stage, parts: u32) -> Added {
    let mut added = [parts; STAGE_COUNT];
    added[stage as usize] = 0;
    added
}

fn begin(added: Added) -> u32 {
    let experiment = dilation::begin(added, LONG_NS, clock).expect("none runs");
    // What the thread did before does not count.
    drop(tag::rest());
    experiment
}

/// The time that `work` takes.
fn time_of(work: impl FnOnce()) -> u64 {
    let start_ns = NOW_NS.get();
    work();
    NOW_NS.get() - start_ns
}

/// Whether a time is the wanted one but for some readings of the clock.
fn is_about(time_ns: u64, wanted_ns: u64) -> bool {
    time_ns.abs_diff(wanted_ns) <= 30 * READING_NS
}

fn stage_of(stage: Stage, ns: u64) {
    let _tag = tag::enter_at(Activity::Get, stage);
    work(ns);
}

#[test]
fn a_stage_takes_what_is_added_and_others_do_not() {
    let _alone = alone();
    let experiment = begin(added(&[(Stage::Table, UNIT / 2), (Stage::Parse, 3 * UNIT)]));
    assert!(is_about(time_of(|| stage_of(Stage::Table, 10_000)), 15_000));
    assert!(is_about(time_of(|| stage_of(Stage::Parse, 10_000)), 40_000));
    assert!(is_about(time_of(|| stage_of(Stage::Wal, 10_000)), 10_000));
    dilation::end(experiment);
    assert_eq!(time_of(|| stage_of(Stage::Table, 10_000)), 10_000);
}

#[test]
fn nested_stages_each_count_once() {
    let _alone = alone();
    let experiment = begin(added(&[(Stage::Dispatch, UNIT)]));
    let time_ns = time_of(|| {
        let _outer = tag::enter_at(Activity::Get, Stage::Dispatch);
        work(1_000);
        let inner = tag::stage(Stage::Memtable);
        work(50_000);
        inner.stage(Stage::Table);
        work(50_000);
        drop(inner);
        work(1_000);
    });
    dilation::end(experiment);
    assert!(is_about(time_ns, 104_000), "{time_ns}");
}

#[test]
fn the_overshoot_of_a_spin_is_taken_off_the_next() {
    let _alone = alone();
    let experiment = begin(added(&[(Stage::Parse, UNIT / 10)]));
    // A tenth of 30 ns and a reading is less than a reading.
    let count = 10_000;
    let time_ns = time_of(|| (0..count).for_each(|_| stage_of(Stage::Parse, 30)));
    dilation::end(experiment);
    let undilated_ns = count * (30 + 2 * READING_NS);
    let added_ns = time_ns - undilated_ns;
    let wanted_ns = count * (30 + READING_NS) / 10;
    assert!(added_ns.abs_diff(wanted_ns) < 2 * READING_NS, "{added_ns}, not {wanted_ns}");
}

#[test]
fn rest_is_not_slowed_down_but_the_disk_is() {
    let _alone = alone();
    let experiment = begin([UNIT; STAGE_COUNT]);
    for kind in WaitKind::ALL {
        let time_ns = time_of(|| {
            let _tag = tag::enter_at(Activity::Put, Stage::Sync);
            let _waiting = wait::begin(kind, "test");
            work(100_000);
        });
        let wanted_ns = if kind == WaitKind::Io { 200_000 } else { 100_000 };
        assert!(is_about(time_ns, wanted_ns), "{kind:?}: {time_ns}");
    }
    // Threads of others wait without a name.
    let time_ns = time_of(|| {
        work(20_000_000);
        drop(tag::enter(Activity::Operator));
    });
    assert!(is_about(time_ns, 20_000_000), "{time_ns}");
    // The generator of a load and the profiler are not the server.
    for activity in [Activity::Load, Activity::Profiler] {
        let time_ns = time_of(|| {
            let _tag = tag::enter(activity);
            work(10_000);
        });
        assert!(is_about(time_ns, 10_000), "{activity:?}: {time_ns}");
    }
    dilation::end(experiment);
}

#[test]
fn an_experiment_ends_at_its_time_and_there_is_one() {
    let _alone = alone();
    let everything = [3 * UNIT; STAGE_COUNT];
    let experiment = dilation::begin(everything, 1_000_000, clock).expect("none runs");
    assert_eq!(dilation::begin(everything, LONG_NS, clock), None);
    drop(tag::rest());
    // The spin is cut short at the end of the experiment.
    let time_ns = time_of(|| stage_of(Stage::Table, 900_000));
    assert!(is_about(time_ns, 1_000_000), "{time_ns}");
    assert_eq!(time_of(|| stage_of(Stage::Table, 10_000)), 10_000 + READING_NS);
    assert!(!dilation::is_on());

    let next = dilation::begin(everything, 1_000_000, clock).expect("the first is over");
    dilation::end(experiment);
    assert!(dilation::is_on(), "the end of another one is not its end");
    work(1_000_000);
    let last = dilation::begin(everything, LONG_NS, clock).expect("the time of the second is over");
    assert_ne!(next, last);
    dilation::end(last);
}

#[test]
fn what_began_before_an_experiment_does_not_count() {
    let _alone = alone();
    let _tag = tag::enter_at(Activity::Get, Stage::Table);
    work(500_000);
    let experiment = dilation::begin([UNIT; STAGE_COUNT], LONG_NS, clock).expect("none runs");
    let time_ns = time_of(|| stage_of(Stage::Parse, 10_000));
    dilation::end(experiment);
    assert!(is_about(time_ns, 20_000), "{time_ns}");
}

/// What the stages of a server take, in nanoseconds. Parse and table are steps of one thread;
/// respond is that of another thread, which works at the same time.
#[derive(Clone, Copy)]
struct Costs {
    parse: u64,
    table: u64,
    respond: u64,
}

impl Costs {
    fn of(&mut self, stage: Stage) -> &mut u64 {
        match stage {
            Stage::Parse => &mut self.parse,
            Stage::Table => &mut self.table,
            _ => &mut self.respond,
        }
    }

    /// Requests per second: those of the slower thread.
    fn rate(self) -> f64 {
        let count = 1_000;
        let first_ns = time_of(|| {
            for _ in 0..count {
                stage_of(Stage::Parse, self.parse);
                stage_of(Stage::Table, self.table);
            }
        });
        let second_ns = time_of(|| (0..count).for_each(|_| stage_of(Stage::Respond, self.respond)));
        count as f64 * 1e9 / first_ns.max(second_ns) as f64
    }
}

#[test]
fn predictions_of_the_rate_are_what_a_real_change_brings() {
    let _alone = alone();
    // The bottleneck is one thread, then the other, then either, depending on the stage.
    for costs in [
        Costs { parse: 30_000, table: 20_000, respond: 40_000 },
        Costs { parse: 8_000, table: 12_000, respond: 40_000 },
        Costs { parse: 2_000, table: 2_000, respond: 3_900 },
    ] {
        let before = {
            let experiment = begin([0; STAGE_COUNT]);
            let rate = costs.rate();
            dilation::end(experiment);
            rate
        };
        for stage in [Stage::Parse, Stage::Table, Stage::Respond] {
            for percent in [10_u32, 25, 50] {
                let factor = 100.0 / f64::from(100 - percent);
                let parts = ((factor - 1.0) * f64::from(UNIT)).round() as u32;
                let experiment = begin(all_but(stage, parts));
                let predicted = costs.rate() * factor / before;
                dilation::end(experiment);
                let mut changed = costs;
                *changed.of(stage) = *changed.of(stage) * u64::from(100 - percent) / 100;
                let real = changed.rate() / costs.rate();
                let off = predicted / real - 1.0;
                assert!(off.abs() < 0.03, "{stage:?} -{percent} %: {predicted}, not {real}");
            }
        }
    }
}
