//! The load beside that of a case: a second load with its own record, or a crowd of idle
//! connections.
//!
//! Invariants:
//! 1. Both loads begin together, as soon as both have opened their connections. All of the load
//!    beside is measured: beyond the subject's limit, the backlog of a warm-up would be all that is
//!    sent.
//! 2. A request to stop, the end of the subject, and an early end of the load of the case end the
//!    load beside.
//!
//! Threads: one runs the second load's phase.

use super::context::Context;
use super::crowd::Crowd;
use super::load::{self, Started};
use super::measurement::{Measured, result_file};
use super::run_dir::AttemptDir;
use super::stop::{Attached, Stop};
use super::subject::Running;
use super::tasks::Task;
use crate::plan;
use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, ErrorKind, Result};
use kvant_load::report::hlog::HlogWriter;
use kvant_load::report::json::{PhaseResult, ResultFile};
use kvant_load::{LoadConfig, Outcome, Phase, Rate, Stopper, verdict};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Upper bound of a load beside a search, which ends when the search does.
const LENGTH_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Between two looks at whether the run is to end, while a load waits for the other.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// A running load beside.
pub(super) enum Beside {
    /// Requests.
    Load(BesideLoad),
    /// Idle connections.
    Crowd(Crowd, Box<ResultFile>),
}

/// A running second load. Dropping it ends it.
pub(super) struct BesideLoad {
    ender: Ender,
    _attached: Attached,
    gate: Gate,
    /// Whether it ends with the load of the case, not by itself.
    is_open_ended: bool,
    file: Box<ResultFile>,
    thread: JoinHandle<Result<(Outcome, Vec<u8>)>>,
}

/// Ends a load when dropped.
struct Ender(Stopper);

impl Drop for Ender {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Lets two loads begin together.
#[derive(Clone)]
pub(super) struct Gate(Arc<GateShared>);

struct GateShared {
    /// Loads that are not ready.
    missing: NamedMutex<u32>,
    changed: NamedCondvar,
    stop: Stop,
}

impl Gate {
    fn new(stop: &Stop) -> Gate {
        Gate(Arc::new(GateShared {
            missing: NamedMutex::new("lab_gate", 2),
            changed: NamedCondvar::new(WaitKind::Idle, "lab_gate"),
            stop: stop.clone(),
        }))
    }

    /// Waits until both loads are ready, the gate is open, or the run is to end.
    pub(super) fn wait(&self) {
        let mut missing = self.0.missing.lock();
        *missing = missing.saturating_sub(1);
        self.0.changed.notify_all();
        while *missing > 0 && !self.0.stop.is_requested() {
            missing = self.0.changed.wait_timeout(missing, LOOK_PERIOD);
        }
    }

    /// No load waits any more: one of them will not be ready.
    pub(super) fn open(&self) {
        *self.0.missing.lock() = 0;
        self.0.changed.notify_all();
    }
}

/// What a load beside leaves.
pub(super) struct BesideResult {
    /// What is judged.
    pub(super) measured: Measured,
    file: Box<ResultFile>,
    log: Option<Vec<u8>>,
}

impl Beside {
    /// Starts it; a crowd is complete then.
    ///
    /// # Errors
    /// As [`load::start`]; `Io` if a thread or the crowd cannot be started.
    pub(super) fn start(
        context: &Context<'_>,
        planned: &plan::Beside,
        running: &Running,
        task: &Task,
    ) -> Result<Beside> {
        let workload = &planned.workload;
        let requests = load::requests_text(&workload.requests);
        let Some(&plan::PlannedRate::Fixed(rate_per_s)) = planned.rate.as_ref() else {
            let crowd = Crowd::start(planned, &running.target, context.stop)?;
            let config = LoadConfig {
                targets: vec![running.target.clone()],
                connection_count: workload.connection_count,
                ..LoadConfig::default()
            };
            let file = result_file(&config, &format!("idle crowd, {requests}"));
            return Ok(Beside::Crowd(crowd, Box::new(file)));
        };
        let Started { mut load, config, ops } =
            load::start_beside(context, workload, &running.target)?;
        let ender = Ender(load.stopper());
        let attached = context.stop.attach(load.stopper());
        if running.end().is_some() {
            // It ended before the load could be told.
            ender.0.stop();
        }
        let gate = Gate::new(context.stop);
        load.before_beginning(Box::new({
            let gate = gate.clone();
            move || gate.wait()
        }));
        let length = task.length();
        let phase = Phase {
            rate: if rate_per_s > 0.0 { Rate::Constant(rate_per_s) } else { Rate::Closed },
            warmup: Duration::ZERO,
            duration: length.unwrap_or(LENGTH_MAX),
            request_count_max: None,
        };
        let clock = Arc::clone(&context.env.clock);
        let of_thread = gate.clone();
        let run = move || {
            let mut writer = HlogWriter::new(Vec::new());
            let mut written = Ok(());
            let outcome = load.run(&phase, &mut |interval| {
                written = writer.write(interval, &ops.all(), clock.wall_ms());
                written.is_ok()
            });
            // If it failed before it was ready.
            of_thread.open();
            let outcome = outcome?;
            load.stop();
            let log = written.and_then(|()| writer.finish());
            Ok((outcome, log.map_err(|error| Error::io("write", Path::new("beside.hlog"), error))?))
        };
        let thread = std::thread::Builder::new().name("lab-beside".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::io("start", Path::new("lab-beside"), error))?;
        let file = Box::new(result_file(&config, &requests));
        let is_open_ended = length.is_none();
        let _attached = attached;
        Ok(Beside::Load(BesideLoad { ender, _attached, gate, is_open_ended, file, thread }))
    }

    /// What the load of the case has to wait for before it begins.
    pub(super) fn gate(&self) -> Option<Gate> {
        match self {
            Beside::Load(load) => Some(load.gate.clone()),
            Beside::Crowd(..) => None,
        }
    }

    /// Ends it. The load of the case has ended, `early` if it did not run for its planned time.
    ///
    /// # Errors
    /// The failure of its requests.
    pub(super) fn finish(self, early: bool) -> Result<BesideResult> {
        match self {
            Beside::Crowd(crowd, mut file) => {
                let outcome = crowd.finish();
                file.phases.push(PhaseResult::of(&outcome, "idle crowd", None));
                let verdict = verdict::judge(&outcome);
                Ok(BesideResult { measured: Measured { outcome, verdict }, file, log: None })
            }
            Beside::Load(load) => {
                let BesideLoad { ender, _attached, gate, is_open_ended, mut file, thread } = load;
                gate.open();
                if is_open_ended || early {
                    ender.0.stop();
                }
                let panicked =
                    |_| Err(Error::new(ErrorKind::Io, "the thread of the load beside panicked"));
                let (outcome, log) = thread.join().unwrap_or_else(panicked)?;
                drop(ender);
                let verdict = verdict::judge(&outcome);
                file.phases.push(PhaseResult::of(&outcome, "", Some(&verdict)));
                Ok(BesideResult { measured: Measured { outcome, verdict }, file, log: Some(log) })
            }
        }
    }
}

impl BesideResult {
    /// Writes `beside.json` and, except for a crowd, `beside.hlog`.
    ///
    /// # Errors
    /// `Io` and `NoSpace` with the file.
    pub(super) fn write(&self, dir: &AttemptDir) -> Result<()> {
        dir.write("beside.json", self.file.to_json().as_bytes())?;
        match &self.log {
            Some(log) => dir.write("beside.hlog", log),
            None => Ok(()),
        }
    }
}
