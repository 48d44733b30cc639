//! A session: from its start, through its drains, to its recording.
//!
//! Two clocks meet here. Samples are stamped by `CLOCK_MONOTONIC`; events and the spawner's
//! deadlines have the environment's clock. A recording counts from the session's start in both.
//!
//! Threads: one drains (the task's, then whoever ends the session); the lock is for the hand-over.

use super::roster::{CpuPlan, Roster};
use super::samples::Samples;
use super::spans::Spans;
use super::{Options, alloc, clock, code, handler, lane, stack, threads, wait};
use crate::recording::{Facts, Recording};
use kvant_base::Events;
use kvant_base::lock::NamedMutex;
use kvant_base::tag::{self, Activity};
use kvant_base::wait::WaitKind;
use kvant_env::{Clock, Env, Step, Task};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long what is in a ring stays there.
const DRAIN_INTERVAL: Duration = Duration::from_millis(200);

/// The task that drains.
pub(super) struct Drain {
    clock: Arc<dyn Clock>,
    is_ending: AtomicBool,
    /// `None` once the session has ended.
    session: NamedMutex<Option<Session>>,
}

struct Session {
    options: Options,
    cpu: Option<CpuPlan>,
    roster: Roster,
    samples: Samples,
    spans: Spans,
    started_mono_ns: u64,
    started_cpu_ns: u64,
    started_wall_ms: u64,
}

impl Drain {
    /// Begins to sample.
    ///
    /// # Errors
    /// When the system refuses what was asked for; nothing was begun then.
    pub(super) fn start(
        options: Options,
        env: &Env,
        events: Option<Arc<Events>>,
    ) -> io::Result<Drain> {
        code::refresh();
        stack::learn();
        handler::install()?;
        // Of threads that have ended since the last session.
        for lane in lane::owned() {
            let id = lane.owner();
            lane.release(|| threads::is_gone(id), || ());
        }
        lane::keep_ready(1)?;
        lane::limit_rings(options.ring_bytes);
        let cpu = options.cpu.as_ref().map(CpuPlan::choose).transpose()?;
        // What came too late for the last session.
        lane::owned().for_each(|lane| {
            lane.signal.clear();
            lane.synchronous.clear();
        });
        lane::take_laneless_count();
        let scheduler_mean_ns =
            options.wait_mean_ns.map(|means| means[WaitKind::Scheduler as usize]);
        let started_mono_ns = clock::monotonic_ns();
        let mut session = Session {
            roster: Roster::new(cpu, scheduler_mean_ns),
            samples: Samples::new(started_mono_ns, options.samples_max),
            spans: Spans::new(events, env.clock.monotonic_ns()),
            options,
            cpu,
            started_mono_ns,
            started_cpu_ns: clock::process_cpu_ns(),
            started_wall_ms: env.clock.wall_ms(),
        };
        handler::switch(true);
        alloc::begin(session.options.alloc_mean_bytes);
        wait::begin(wait::Wanted {
            mean_ns: session.options.wait_mean_ns,
            cpu_mean_ns: session.cpu.and_then(|plan| plan.wait_cpu_mean_ns()),
        });
        // Here and now, so that whoever started the session is sampled from now on.
        session.pass();
        Ok(Drain {
            clock: Arc::clone(&env.clock),
            is_ending: AtomicBool::new(false),
            session: NamedMutex::new("profiler", Some(session)),
        })
    }

    /// Tells the task to end at its next step.
    pub(super) fn request_end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Ends the session; called once, after the task has ended.
    pub(super) fn finish(&self) -> Recording {
        let session = self.session.lock().take();
        session.expect("a session ends once").finish()
    }
}

impl Task for Drain {
    fn name(&self) -> &str {
        "profiler"
    }

    fn step(&self) -> Step {
        let _tag = tag::enter(Activity::Profiler);
        let _pause = alloc::Pause::begin();
        if self.is_ending.load(Ordering::Acquire) {
            return Step::Finished;
        }
        stack::learn();
        if let Some(session) = self.session.lock().as_mut() {
            session.pass();
        }
        Step::IdleUntil(self.clock.monotonic_ns() + DRAIN_INTERVAL.as_nanos() as u64)
    }
}

impl Session {
    fn pass(&mut self) {
        self.roster.pass(&mut self.samples);
        self.spans.read();
    }

    fn finish(mut self) -> Recording {
        let _tag = tag::enter(Activity::Profiler);
        wait::end();
        alloc::end();
        handler::switch(false);
        self.spans.read();
        let mut recording = Recording {
            threads: self.roster.finish(&mut self.samples),
            spans: self.spans.finish(),
            facts: Facts {
                started_wall_ns: self.started_wall_ms * 1_000_000,
                duration_ns: clock::monotonic_ns() - self.started_mono_ns,
                command: command(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                process_id: std::process::id(),
                cpu_count: kvant_env::host::cpu_count() as u32,
                process_cpu_ns: clock::process_cpu_ns().saturating_sub(self.started_cpu_ns),
                cpu: self.cpu.map(|plan| plan.describe(self.samples.has_kernel_frames())),
                alloc_mean_bytes: self.options.alloc_mean_bytes,
                wait_mean_ns: self.options.wait_mean_ns,
                dropped_count: 0,
                // Again, for what was loaded meanwhile.
                modules: code::refresh(),
            },
            ..Recording::default()
        };
        self.samples.finish(&mut recording);
        recording
    }
}

/// The program and its arguments; empty where `/proc` is not there.
fn command() -> String {
    let arguments = kvant_env::host::read_text(Path::new("/proc/self/cmdline")).unwrap_or_default();
    arguments.trim_end_matches('\0').replace('\0', " ")
}
