//! CPU time by what it was used for, always sampled: the profiler in the background, at a low rate.
//!
//! A session lasts for five seconds and is summed up by tag and second: stacks are for recordings
//! on request, to which it gives way. Its seconds are in the history when it has ended.
//!
//! Threads: a task of its own starts the sessions. The thread that ends a session, this task's or
//! that of a recording on request, adds its seconds to the history.

use super::{CpuSecond, History};
use crate::timing::SECOND_NS;
use kvant_base::lock::NamedMutex;
use kvant_env::{Env, Step, Task, TaskHandle};
use kvant_profiler::collect::{Background, CpuOptions, Engine, Options};
use kvant_profiler::recording::{Kind, Recording};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples per second of CPU time: a hundred in a session of a busy processor.
const RATE_HZ: u32 = 19;
const SESSION_NS: u64 = 5 * SECOND_NS;
/// More than two hundred processors give in a session.
const SAMPLES_MAX: usize = 20_000;

/// A profile that always runs.
pub(crate) struct Profile {
    sampling: Arc<Sampling>,
    task: Arc<dyn TaskHandle>,
}

struct Sampling {
    env: Env,
    history: Arc<History>,
    is_ending: AtomicBool,
    session: NamedMutex<Option<Background>>,
}

impl Profile {
    pub(crate) fn start(env: &Env, history: Arc<History>) -> Profile {
        let sampling = Arc::new(Sampling {
            env: env.clone(),
            history,
            is_ending: AtomicBool::new(false),
            session: NamedMutex::new("history profile", None),
        });
        Profile { task: env.spawner.spawn(Arc::clone(&sampling) as _), sampling }
    }

    pub(crate) fn stop(&self) {
        self.sampling.is_ending.store(true, Ordering::Release);
        self.task.wake();
        self.task.join();
    }
}

impl Sampling {
    /// Starts a session. Without one, because a profile is being recorded or the system refuses
    /// timers, these seconds are missing.
    fn begin(&self) -> Option<Background> {
        let options = Options {
            cpu: Some(CpuOptions { rate_hz: RATE_HZ, engine: Engine::Timer }),
            alloc_mean_bytes: None,
            wait_mean_ns: None,
            samples_max: SAMPLES_MAX,
        };
        let start_ns = self.env.clock.monotonic_ns();
        let history = Arc::clone(&self.history);
        let on_end = move |recording| history.add_cpu(seconds(start_ns, &recording));
        Background::start(options, &self.env, on_end).ok()
    }
}

impl Task for Sampling {
    fn name(&self) -> &str {
        "kvant-profile"
    }

    fn step(&self) -> Step {
        let mut session = self.session.lock();
        *session = None;
        if self.is_ending.load(Ordering::Acquire) {
            return Step::Finished;
        }
        *session = self.begin();
        Step::IdleUntil(self.env.clock.monotonic_ns() + SESSION_NS)
    }
}

/// The sums of each second of a recording; the last may be shorter.
fn seconds(start_ns: u64, recording: &Recording) -> Vec<CpuSecond> {
    let length_ns = recording.facts.duration_ns;
    let count = length_ns.div_ceil(SECOND_NS);
    let mut sums: Vec<BTreeMap<u16, u64>> = (0..count).map(|_| BTreeMap::new()).collect();
    for sample in recording.samples.iter().filter(|sample| sample.kind == Kind::Cpu) {
        let second = (sample.time_ns + sample.duration_ns) / SECOND_NS;
        if let Some(sums) = usize::try_from(second).ok().and_then(|second| sums.get_mut(second)) {
            *sums.entry(sample.tag.code()).or_default() += sample.weight;
        }
    }
    let second = |(number, sums): (u64, BTreeMap<u16, u64>)| {
        let from_ns = number * SECOND_NS;
        CpuSecond {
            start_ns: start_ns + from_ns,
            length_ns: SECOND_NS.min(length_ns - from_ns),
            cpu_ns: sums.into_iter().collect(),
        }
    };
    (0..count).zip(sums).map(second).collect()
}

#[cfg(test)]
mod tests;
