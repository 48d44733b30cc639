//! The load beside that of a case: a second load with its own record, or a crowd of idle
//! connections.
//!
//! Threads: one runs the second load's phase.

use super::context::Context;
use super::crowd::Crowd;
use super::load::{self, Started};
use super::measurement::result_file;
use super::run_dir::AttemptDir;
use super::subject::Running;
use super::tasks::Task;
use crate::plan;
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

/// What a load beside leaves.
pub(super) struct BesideResult {
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
        let Some(rate_per_s) = planned.rate_per_s else {
            let crowd = Crowd::start(workload, &running.target)?;
            let config = LoadConfig {
                targets: vec![running.target.clone()],
                connection_count: workload.connection_count,
                ..LoadConfig::default()
            };
            let file = result_file(&config, &format!("idle crowd, {requests}"));
            return Ok(Beside::Crowd(crowd, Box::new(file)));
        };
        let Started { mut load, config, ops } = load::start(context, workload, &running.target)?;
        let ender = Ender(load.stopper());
        let length = task.length();
        let phase = Phase {
            rate: if rate_per_s > 0.0 { Rate::Constant(rate_per_s) } else { Rate::Closed },
            warmup: task.warmup(),
            duration: length.map_or(LENGTH_MAX, |length| length.saturating_sub(task.warmup())),
            request_count_max: None,
        };
        let clock = Arc::clone(&context.env.clock);
        let run = move || {
            let mut writer = HlogWriter::new(Vec::new());
            let mut written = Ok(());
            let outcome = load.run(&phase, &mut |interval| {
                written = writer.write(interval, &ops.all(), clock.wall_ms());
                written.is_ok()
            })?;
            load.stop();
            let log = written.and_then(|()| writer.finish());
            Ok((outcome, log.map_err(|error| Error::io("write", Path::new("beside.hlog"), error))?))
        };
        let thread = std::thread::Builder::new().name("lab-beside".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::io("start", Path::new("lab-beside"), error))?;
        let file = Box::new(result_file(&config, &requests));
        let is_open_ended = length.is_none();
        Ok(Beside::Load(BesideLoad { ender, is_open_ended, file, thread }))
    }

    /// Ends it.
    ///
    /// # Errors
    /// The failure of its requests.
    pub(super) fn finish(self) -> Result<BesideResult> {
        match self {
            Beside::Crowd(crowd, mut file) => {
                let outcome = crowd.finish();
                file.phases.push(PhaseResult::of(&outcome, "idle crowd", None));
                Ok(BesideResult { file, log: None })
            }
            Beside::Load(BesideLoad { ender, is_open_ended, mut file, thread }) => {
                if is_open_ended {
                    ender.0.stop();
                }
                let panicked =
                    |_| Err(Error::new(ErrorKind::Io, "the thread of the load beside panicked"));
                let (outcome, log) = thread.join().unwrap_or_else(panicked)?;
                drop(ender);
                let verdict = verdict::judge(&outcome);
                file.phases.push(PhaseResult::of(&outcome, "", Some(&verdict)));
                Ok(BesideResult { file, log: Some(log) })
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
