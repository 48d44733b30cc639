//! The task that records the history, ten times per second, and with it the profile's.
//!
//! Threads: a task of its own. One reading takes some 10 us, and more with the number of threads
//! and selectors.

#[cfg(feature = "profiler")]
use super::Profile;
use super::{History, WINDOW_NS, Window};
use crate::http::Operation;
use crate::timing::{self, Growth, Phase, SECOND_KEPT_COUNT, SECOND_NS, Timings, Trace};
use kvant_base::lock::NamedMutex;
use kvant_env::host::own::{OwnFigures, OwnUse};
use kvant_env::{Clock, Env, Step, Task, TaskHandle};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A running recorder.
pub(crate) struct Recorder {
    recording: Arc<Recording>,
    task: Arc<dyn TaskHandle>,
    #[cfg(feature = "profiler")]
    profile: Profile,
}

struct Recording {
    history: Arc<History>,
    timings: Vec<Arc<Timings>>,
    clock: Arc<dyn Clock>,
    is_ending: AtomicBool,
    readings: NamedMutex<Readings>,
}

struct Readings {
    growth: Growth,
    own: OwnUse,
    /// The last reading, and its time.
    last: Option<(u64, OwnFigures)>,
}

impl Recorder {
    pub(crate) fn start(env: &Env, history: Arc<History>, timings: Vec<Arc<Timings>>) -> Recorder {
        #[cfg(feature = "profiler")]
        let profile = Profile::start(env, Arc::clone(&history));
        let recording = Arc::new(Recording::new(Arc::clone(&env.clock), history, timings));
        Recorder {
            task: env.spawner.spawn(Arc::clone(&recording) as _),
            recording,
            #[cfg(feature = "profiler")]
            profile,
        }
    }

    /// What was recorded goes on to be shown.
    pub(crate) fn stop(&self) {
        self.recording.is_ending.store(true, Ordering::Release);
        self.task.wake();
        self.task.join();
        #[cfg(feature = "profiler")]
        self.profile.stop();
    }
}

impl Recording {
    fn new(clock: Arc<dyn Clock>, history: Arc<History>, timings: Vec<Arc<Timings>>) -> Recording {
        let readings = Readings { growth: Growth::new(), own: OwnUse::open(), last: None };
        Recording {
            history,
            timings,
            clock,
            is_ending: AtomicBool::new(false),
            readings: NamedMutex::new("history recorder", readings),
        }
    }

    /// Adds the window from the last reading until `now_ns`. The first reading only begins one.
    fn record(&self, now_ns: u64) {
        let mut readings = self.readings.lock();
        let figures = readings.own.read();
        let Some((start_ns, earlier)) = readings.last.replace((now_ns, figures)) else { return };
        let window = Window {
            start_ns,
            length_ns: now_ns.saturating_sub(start_ns),
            machine: figures.since(&earlier),
            operations: readings.growth.read(&self.timings),
        };
        self.history.add(&window);
        let second = now_ns / SECOND_NS;
        if second != start_ns / SECOND_NS {
            self.history.end_second(&slowest(timing::take_slow(&self.timings, second)));
        }
    }
}

/// The slowest few of each operation, in the order of their responses.
fn slowest(mut traces: Vec<Trace>) -> Vec<Trace> {
    traces.sort_unstable_by_key(|trace| Reverse(trace.stamps.phase_ns(Phase::Total)));
    let mut counts = [0; Operation::ALL.len()];
    traces.retain(|trace| {
        let count = &mut counts[trace.counted_as() as usize];
        *count += 1;
        *count <= SECOND_KEPT_COUNT
    });
    traces.sort_unstable_by_key(|trace| trace.stamps.written_ns);
    traces
}

impl Task for Recording {
    fn name(&self) -> &str {
        "kvant-history"
    }

    fn step(&self) -> Step {
        if self.is_ending.load(Ordering::Acquire) {
            return Step::Finished;
        }
        let now_ns = self.clock.monotonic_ns();
        self.record(now_ns);
        // Whole windows, so that delays do not add up.
        Step::IdleUntil((now_ns / WINDOW_NS + 1) * WINDOW_NS)
    }
}
