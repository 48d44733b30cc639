//! A session, from its start through its drains to its recording.
//!
//! It uses two clocks: samples have timestamps of `CLOCK_MONOTONIC`; events and the spawner's
//! deadlines those of the environment's clock. A recording counts from the session's start in both.
//!
//! Threads: one drains, first the task's, then the one that ends the session; the lock hands the
//! session over.

use super::options::Options;
use super::roster::{self, CpuPlan, Roster};
use super::samples::Samples;
use super::spans::Spans;
use super::{alloc, clock, code, handler, stack, wait};
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

const DRAIN_INTERVAL: Duration = Duration::from_millis(200);

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
    /// Starts to sample. Samples nothing if the system refuses an option.
    pub(super) fn start(
        options: Options,
        env: &Env,
        events: Option<Arc<Events>>,
    ) -> io::Result<Drain> {
        code::refresh();
        stack::learn();
        handler::install()?;
        let cpu = roster::prepare(&options)?;
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
        handler::set_sampling(true);
        alloc::begin(session.options.alloc_mean_bytes);
        let wait_cpu_mean_ns = session.cpu.and_then(|plan| plan.wait_cpu_mean_ns());
        wait::begin(session.options.wait_mean_ns, wait_cpu_mean_ns);
        // On this thread, so that the caller is sampled from the moment this returns.
        session.drain();
        Ok(Drain {
            clock: Arc::clone(&env.clock),
            is_ending: AtomicBool::new(false),
            session: NamedMutex::new("profiler", Some(session)),
        })
    }

    pub(super) fn request_end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Ends the session. Called once, after the task has ended.
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
            session.drain();
        }
        Step::IdleUntil(self.clock.monotonic_ns() + DRAIN_INTERVAL.as_nanos() as u64)
    }
}

impl Session {
    fn drain(&mut self) {
        self.roster.drain(&mut self.samples);
        self.spans.read();
    }

    fn finish(mut self) -> Recording {
        let _tag = tag::enter(Activity::Profiler);
        wait::end();
        alloc::end();
        handler::set_sampling(false);
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
                // Libraries may have been loaded since the start.
                modules: code::refresh(),
            },
            ..Recording::default()
        };
        self.samples.finish(&mut recording);
        recording
    }
}

/// The program and its arguments; empty without `/proc`.
fn command() -> String {
    let arguments = kvant_env::host::read_text(Path::new("/proc/self/cmdline")).unwrap_or_default();
    arguments.trim_end_matches('\0').replace('\0', " ")
}
