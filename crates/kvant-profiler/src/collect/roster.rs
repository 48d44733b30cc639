//! The threads that a session samples: their lanes, and the sources of their signals.
//!
//! Threads: one, the drain.

use super::lane::{self, Lane};
use super::options::{CpuOptions, Engine, Options};
use super::samples::Samples;
use super::threads::{self, ReadyTime, SchedulerStats};
use super::timer::Timer;
use super::{clock, perf};
use crate::recording::{CpuSampling, Thread};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;

const RATE_HZ_MAX: u32 = 10_000;
const RATE_HZ_DEFAULT: u32 = 99;

/// Prepares the lanes for a session, and chooses how it samples CPU time.
pub(super) fn prepare(options: &Options) -> io::Result<Option<CpuPlan>> {
    // Of threads that have ended since the last session.
    for lane in lane::owned() {
        let id = lane.owner();
        lane.release(|| threads::has_ended(id), || ());
    }
    lane::keep_ready(1)?;
    let cpu = options.cpu.as_ref().map(CpuPlan::choose).transpose()?;
    // Records that came too late for the last session.
    lane::owned().for_each(|lane| {
        lane.signal.clear();
        lane.synchronous.clear();
    });
    lane::take_laneless_count();
    Ok(cpu)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CpuPlan {
    period_ns: u64,
    trigger: Trigger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Perf { with_kernel: bool },
    Timer,
}

impl CpuPlan {
    /// Chooses what the system permits. A lane must be free.
    fn choose(options: &CpuOptions) -> io::Result<CpuPlan> {
        let trigger = match options.engine {
            Engine::Timer => Trigger::Timer,
            Engine::Perf => match perf::probe(true) {
                Ok(()) => Trigger::Perf { with_kernel: true },
                Err(_no_kernel) => perf::probe(false)
                    .map(|()| Trigger::Perf { with_kernel: false })
                    .map_err(|error| perf::refusal(&error))?,
            },
        };
        let rate_hz = match options.rate_hz {
            0 => RATE_HZ_DEFAULT,
            rate_hz => rate_hz.min(RATE_HZ_MAX),
        };
        let plan = CpuPlan { period_ns: 1_000_000_000 / u64::from(rate_hz), trigger };
        if trigger == Trigger::Timer {
            let own = lane::take(lane::own_thread_id()).ok_or(io::ErrorKind::OutOfMemory)?;
            Timer::start(own, plan.period_ns)?;
        }
        Ok(plan)
    }

    pub(super) fn describe(&self, has_kernel_frames: bool) -> CpuSampling {
        let engine = match self.trigger {
            Trigger::Perf { .. } => "perf",
            Trigger::Timer => "timer",
        };
        CpuSampling { engine: engine.to_owned(), period_ns: self.period_ns, has_kernel_frames }
    }

    /// Mean CPU time of waits per sample; `None` if signals sample it like all other CPU time.
    pub(super) fn wait_cpu_mean_ns(&self) -> Option<u64> {
        (self.trigger == Trigger::Timer).then_some(self.period_ns)
    }

    /// Starts to sample the owner of `lane`. `None` if the thread has ended or a resource limit is
    /// reached.
    fn start(&self, lane: &'static Lane) -> Option<SignalSource> {
        let timer = || {
            Timer::start(lane, self.period_ns).map(|timer| SignalSource::Timer { _timer: timer })
        };
        let source = match self.trigger {
            Trigger::Perf { with_kernel } => perf::Event::start(lane, self.period_ns, with_kernel)
                .map(|event| SignalSource::Perf { _event: event })
                // Locked memory and descriptors are limited.
                .or_else(|_refused| timer()),
            Trigger::Timer => timer(),
        };
        source.ok()
    }
}

/// Sends signals to a thread until dropped.
enum SignalSource {
    Perf { _event: perf::Event },
    Timer { _timer: Timer },
}

struct Member {
    /// In [`Roster::threads`].
    index: u32,
    lane: Option<&'static Lane>,
    source: Option<SignalSource>,
    scheduler: SchedulerStats,
    /// The thread's waiting time at its last scheduler sample, and the time of that sample.
    waited_ns: u64,
    waited_at_mono_ns: u64,
    /// Whether the name must be read again: threads are named after they have started.
    is_new: bool,
}

pub(super) struct Roster {
    cpu: Option<CpuPlan>,
    /// Time waited for processors per sample; `None` if it is not sampled.
    scheduler_mean_ns: Option<u64>,
    members: BTreeMap<u32, Member>,
    threads: Vec<Thread>,
    frames: Vec<u64>,
}

impl Roster {
    pub(super) fn new(cpu: Option<CpuPlan>, scheduler_mean_ns: Option<u64>) -> Roster {
        Roster {
            cpu,
            scheduler_mean_ns,
            members: BTreeMap::new(),
            threads: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Adds new threads, empties all rings, and removes threads that have ended.
    pub(super) fn drain(&mut self, samples: &mut Samples) {
        let started_mono_ns = clock::monotonic_ns();
        for (&id, member) in &mut self.members {
            member.start(id, self.cpu.as_ref());
        }
        self.read_names();
        // A listing that fails is repeated at the next drain.
        let listed = threads::list().unwrap_or_default();
        let new = listed.into_iter().filter(|id| !self.members.contains_key(id));
        let new: Vec<u32> = new.collect();
        if lane::keep_ready(new.len()).is_ok() {
            new.into_iter().for_each(|id| self.add(id));
        }
        self.drain_lanes(samples);
        let ended = self.read_scheduler_waits(samples);
        self.members.retain(|id, _| !ended.contains(id));
        self.release_lanes(samples);
        samples.settle(started_mono_ns);
    }

    /// Stops sampling and collects what is left.
    pub(super) fn finish(mut self, samples: &mut Samples) -> Vec<Thread> {
        for member in self.members.values_mut() {
            member.source = None;
            // It may have been renamed.
            member.is_new = true;
        }
        self.read_names();
        self.drain_lanes(samples);
        // The rest of the waits, however small.
        self.scheduler_mean_ns = self.scheduler_mean_ns.map(|_| 1);
        self.read_scheduler_waits(samples);
        self.threads
    }

    fn add(&mut self, id: u32) {
        let scheduler = match self.scheduler_mean_ns {
            Some(_) => SchedulerStats::open(id),
            None => SchedulerStats::UNREAD,
        };
        let (Some(name), ready_time) = (threads::name_of(id), scheduler.read()) else {
            return;
        };
        let lane = lane::take(id);
        if let Some(lane) = lane {
            // Ids are reused: the lane may be that of a thread that has ended.
            lane.stack.forget();
        }
        if let (Some(lane), Some(cpu_ns)) = (lane, clock::cpu_ns_of(id)) {
            lane.sampled_cpu_ns.store(cpu_ns, Ordering::Relaxed);
        }
        let mut member = Member {
            index: self.threads.len() as u32,
            lane,
            source: None,
            scheduler,
            waited_ns: if let ReadyTime::Waited { ns } = ready_time { ns } else { 0 },
            waited_at_mono_ns: clock::monotonic_ns(),
            is_new: true,
        };
        member.start(id, self.cpu.as_ref());
        self.threads.push(Thread { id, name });
        self.members.insert(id, member);
    }

    fn read_names(&mut self) {
        for (&id, member) in &mut self.members {
            if std::mem::take(&mut member.is_new)
                && let Some(name) = threads::name_of(id)
            {
                self.threads[member.index as usize].name = name;
            }
        }
    }

    fn drain_lanes(&mut self, samples: &mut Samples) {
        lane::owned().for_each(|lane| self.drain_lane(lane, lane.owner(), samples));
        samples.count_dropped(lane::take_laneless_count());
    }

    fn drain_lane(&mut self, lane: &Lane, id: u32, samples: &mut Samples) {
        for ring in [&lane.signal, &lane.synchronous] {
            samples.count_dropped(ring.take_dropped_count());
            if ring.is_empty() {
                continue;
            }
            let thread = self.index_of(id);
            ring.drain(&mut self.frames, |header, frames| samples.add(thread, header, frames));
        }
        lane.stack.resolve();
    }

    /// The thread's index in the recording. A thread that ended before it was listed is added.
    fn index_of(&mut self, id: u32) -> u32 {
        if let Some(member) = self.members.get(&id) {
            return member.index;
        }
        let known = self.threads.iter().rposition(|thread| thread.id == id);
        let index = known.unwrap_or_else(|| {
            let name = threads::name_of(id).unwrap_or_default();
            self.threads.push(Thread { id, name });
            self.threads.len() - 1
        });
        index as u32
    }

    /// Samples waits for processors; returns the threads that have ended.
    fn read_scheduler_waits(&mut self, samples: &mut Samples) -> Vec<u32> {
        let mut ended = Vec::new();
        for (&id, member) in &mut self.members {
            match (member.scheduler.read(), self.scheduler_mean_ns) {
                (ReadyTime::Waited { ns }, Some(mean_ns)) => member.add_wait(ns, mean_ns, samples),
                (ReadyTime::Waited { .. }, None) => {}
                (ReadyTime::Ended, _) => ended.push(id),
                (ReadyTime::Unknown, _) if threads::has_ended(id) => ended.push(id),
                (ReadyTime::Unknown, _) => {}
            }
        }
        ended
    }

    fn release_lanes(&mut self, samples: &mut Samples) {
        for lane in lane::owned() {
            let id = lane.owner();
            if !self.members.contains_key(&id) {
                lane.release(|| threads::has_ended(id), || self.drain_lane(lane, id, samples));
            }
        }
    }
}

impl Member {
    /// Starts the source of signals unless it runs.
    fn start(&mut self, id: u32, plan: Option<&CpuPlan>) {
        if let (Some(plan), None, Some(lane)) = (plan, &self.source, self.lane) {
            debug_assert_eq!(lane.owner(), id);
            self.source = plan.start(lane);
        }
    }

    /// Samples the waits for processors; their sum since the thread's start is `waited_ns`.
    fn add_wait(&mut self, waited_ns: u64, mean_ns: u64, samples: &mut Samples) {
        let new_ns = waited_ns.saturating_sub(self.waited_ns);
        if new_ns < mean_ns {
            return;
        }
        let now_mono_ns = clock::monotonic_ns();
        samples.add_scheduler_wait(self.index, self.waited_at_mono_ns..now_mono_ns, new_ns);
        self.waited_ns = waited_ns;
        self.waited_at_mono_ns = now_mono_ns;
    }
}
