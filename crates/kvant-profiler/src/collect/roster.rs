//! The threads that a session knows: their lanes, and what makes signals for them.
//!
//! Threads: one, the drain.

use super::lane::{self, Lane};
use super::perf;
use super::samples::{Samples, SchedulerWait};
use super::threads::{self, Account, Balance};
use super::timer::Timer;
use super::{CpuOptions, Engine, clock};
use crate::recording::{CpuSampling, Thread};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;

/// CPU time is sampled at least and at most so often a second.
const RATES_HZ: (u32, u32) = (1, 10_000);
const RATE_HZ_DEFAULT: u32 = 99;

/// How CPU time is sampled.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuPlan {
    period_ns: u64,
    means: Means,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    Perf { with_kernel: bool },
    Timer,
}

impl CpuPlan {
    /// Chooses what the system permits. There is a free lane.
    ///
    /// # Errors
    /// When it permits nothing of what was asked for.
    pub(super) fn choose(options: &CpuOptions) -> io::Result<CpuPlan> {
        let means = match options.engine {
            Engine::Timer => Means::Timer,
            Engine::Perf => match perf::probe(true) {
                Ok(()) => Means::Perf { with_kernel: true },
                Err(_no_kernel) => perf::probe(false)
                    .map(|()| Means::Perf { with_kernel: false })
                    .map_err(|error| perf::refusal(&error))?,
            },
        };
        let rate_hz = match options.rate_hz {
            0 => RATE_HZ_DEFAULT,
            rate_hz => rate_hz.clamp(RATES_HZ.0, RATES_HZ.1),
        };
        let plan = CpuPlan { period_ns: 1_000_000_000 / u64::from(rate_hz), means };
        if means == Means::Timer {
            let own = lane::take(lane::own_thread_id()).ok_or(io::ErrorKind::OutOfMemory)?;
            Timer::start(own, plan.period_ns)?;
        }
        Ok(plan)
    }

    pub(super) fn describe(&self, has_kernel_frames: bool) -> CpuSampling {
        let engine = match self.means {
            Means::Perf { .. } => "perf",
            Means::Timer => "timer",
        };
        CpuSampling { engine: engine.to_owned(), period_ns: self.period_ns, has_kernel_frames }
    }

    /// How much CPU time of waits makes a sample; `None` where they are sampled like all else.
    pub(super) fn wait_cpu_mean_ns(&self) -> Option<u64> {
        (self.means == Means::Timer).then_some(self.period_ns)
    }

    /// `None` when the thread has ended meanwhile, or the system has nothing left for it.
    fn start(&self, lane: &'static Lane) -> Option<Source> {
        let timer =
            || Timer::start(lane, self.period_ns).map(|timer| Source::Timer { _timer: timer });
        let source = match self.means {
            Means::Perf { with_kernel } => perf::Event::start(lane, self.period_ns, with_kernel)
                .map(|event| Source::Perf { _event: event })
                // Locked memory and descriptors may run out.
                .or_else(|_refused| timer()),
            Means::Timer => timer(),
        };
        source.ok()
    }
}

/// What sends signals to a thread, until it is dropped.
enum Source {
    Perf { _event: perf::Event },
    Timer { _timer: Timer },
}

struct Member {
    /// In [`Roster::threads`].
    index: u32,
    lane: Option<&'static Lane>,
    source: Option<Source>,
    account: Account,
    /// What the account said when a sample was made of it, and when that was.
    waited_ns: u64,
    waited_at_mono_ns: u64,
    /// Threads get their names only after they have begun: they are asked twice.
    is_new: bool,
}

pub(super) struct Roster {
    cpu: Option<CpuPlan>,
    /// How much waiting for a processor makes a sample; `None` when it is not sampled.
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

    /// Takes up new threads, collects what there is of all, and lets go of those that have ended.
    pub(super) fn pass(&mut self, samples: &mut Samples) {
        let started_mono_ns = clock::monotonic_ns();
        for (&id, member) in &mut self.members {
            member.start(id, self.cpu.as_ref());
        }
        self.read_names();
        // What cannot be listed now can be next time.
        let listed = threads::list().unwrap_or_default();
        let new = listed.into_iter().filter(|id| !self.members.contains_key(id));
        let new: Vec<u32> = new.collect();
        if lane::keep_ready(new.len()).is_ok() {
            new.into_iter().for_each(|id| self.take_up(id));
        }
        self.drain_lanes(samples);
        let ended = self.read_accounts(samples);
        self.members.retain(|id, _| !ended.contains(id));
        self.release_lanes(samples);
        samples.settle(started_mono_ns);
    }

    /// Ends sampling, and collects what is left.
    pub(super) fn finish(mut self, samples: &mut Samples) -> Vec<Thread> {
        for member in self.members.values_mut() {
            member.source = None;
            // Whoever was renamed meanwhile.
            member.is_new = true;
        }
        self.read_names();
        self.drain_lanes(samples);
        // Whatever is left of waits, however small.
        self.scheduler_mean_ns = self.scheduler_mean_ns.map(|_| 1);
        self.read_accounts(samples);
        self.threads
    }

    fn take_up(&mut self, id: u32) {
        let account = Account::open(id);
        let (Some(name), balance) = (threads::name_of(id), account.read()) else {
            return;
        };
        let lane = lane::take(id);
        if let Some(lane) = lane {
            // Numbers are given out again: it may be that of a thread that has ended.
            lane.stack.forget();
        }
        if let (Some(lane), Some(cpu_ns)) = (lane, clock::cpu_ns_of(id)) {
            lane.sampled_cpu_ns.store(cpu_ns, Ordering::Relaxed);
        }
        let mut member = Member {
            index: self.threads.len() as u32,
            lane,
            source: None,
            account,
            waited_ns: if let Balance::Waited { ns } = balance { ns } else { 0 },
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

    /// The thread in the recording; a new one for a thread that has ended before any listing showed
    /// it.
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

    /// Makes samples of waits for processors; the threads that have ended.
    fn read_accounts(&mut self, samples: &mut Samples) -> Vec<u32> {
        let mut ended = Vec::new();
        for (&id, member) in &mut self.members {
            match (member.account.read(), self.scheduler_mean_ns) {
                (Balance::Waited { ns }, Some(mean_ns)) => member.add_wait(ns, mean_ns, samples),
                (Balance::Waited { .. }, None) => {}
                (Balance::Gone, _) => ended.push(id),
                (Balance::Unknown, _) if threads::is_gone(id) => ended.push(id),
                (Balance::Unknown, _) => {}
            }
        }
        ended
    }

    /// Gives back the lanes of threads that have ended.
    fn release_lanes(&mut self, samples: &mut Samples) {
        for lane in lane::owned() {
            let id = lane.owner();
            if !self.members.contains_key(&id) {
                lane.release(|| threads::is_gone(id), || self.drain_lane(lane, id, samples));
            }
        }
    }
}

impl Member {
    /// Starts what sends signals to the thread, unless it runs.
    fn start(&mut self, id: u32, plan: Option<&CpuPlan>) {
        if let (Some(plan), None, Some(lane)) = (plan, &self.source, self.lane) {
            debug_assert_eq!(lane.owner(), id);
            self.source = plan.start(lane);
        }
    }

    /// The thread has waited for processors for `waited_ns` since it began.
    fn add_wait(&mut self, waited_ns: u64, mean_ns: u64, samples: &mut Samples) {
        let new_ns = waited_ns.saturating_sub(self.waited_ns);
        if new_ns < mean_ns {
            return;
        }
        let now_mono_ns = clock::monotonic_ns();
        samples.add_scheduler_wait(SchedulerWait {
            thread: self.index,
            since_mono_ns: self.waited_at_mono_ns,
            until_mono_ns: now_mono_ns,
            waited_ns: new_ns,
        });
        self.waited_ns = waited_ns;
        self.waited_at_mono_ns = now_mono_ns;
    }
}
