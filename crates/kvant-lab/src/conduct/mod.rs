//! Conduct: runs a plan and leaves a run directory ([`crate::record`]).
//!
//! - `runner` runs repeats, cases and tries; `stage` keeps the running subject with the data of
//!   the case; `attempt` runs one load and writes its files.
//! - `subject` starts a server as a `process` group; `data` fills it.
//! - `tasks` makes phases from the plan and the `maxima` found so far; `load`, `beside`,
//!   `crowd` and `external` make the load.
//! - `intervention` makes suspects of slow requests happen; `what_if` slows a subject down, but for
//!   one stage of its work.
//! - `observe` records beside it: the kernel's account (`watch`), statistics, `events` and a
//!   recording. `judge` decides whether an attempt counts.
//! - `fsync` measures the disk, for subjects that wait for it.
//! - `run_dir` writes the run directory; `cleanup` leaves nothing behind.
//!
//! Invariants:
//! 1. However a run ends, its directory is readable, no process that it started is left, and its
//!    temporary stores are removed.
//! 2. All times are those of one monotonic clock.
//! 3. What was disturbed is repeated or marked.
//!
//! Threads: the caller's conducts, bound to the CPUs of the generator.

mod ask;
mod attempt;
mod beside;
pub mod cleanup;
mod clocks;
mod context;
mod crowd;
mod data;
mod debt;
mod events;
mod external;
mod facts;
mod fsync;
mod http;
mod intervention;
mod judge;
mod load;
mod log;
mod maxima;
mod measurement;
mod memory_probe;
mod nodes;
mod observe;
mod options;
mod process;
pub mod progress;
mod run_dir;
mod runner;
mod stage;
pub mod stop;
mod subject;
mod tasks;
mod tree;
mod watch;
mod what_if;

pub use ask::Asked;
pub use options::Options;
pub use progress::Progress;
pub use stop::Stop;

use crate::plan::Plan;
use crate::record::{Attempt, AttemptVerdict, Run, RunState};
use cleanup::{Record, Scratch};
use context::{Context, Problem, absolute};
use kvant_base::{Error, Result};
use kvant_env::Env;
use process::Bound;
use run_dir::{Earlier, RunDir};
use runner::Runner;
use rustix::thread::CpuSet;
use std::path::PathBuf;

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// As in `run.json`.
    pub run: Run,
    /// As in the journal.
    pub attempts: Vec<Attempt>,
}

impl Ended {
    /// Attempts with such a verdict.
    pub fn count(&self, is_counted: impl Fn(&AttemptVerdict) -> bool) -> usize {
        self.attempts.iter().filter(|attempt| is_counted(&attempt.verdict)).count()
    }
}

/// Runs `plan` until its end, or until `stop` is requested.
///
/// # Errors
/// `Invalid` if the plan cannot be run here, or the directory holds another run. `Io` and `NoSpace`
/// when the run directory cannot be written: subjects are stopped, and what was written before
/// stays readable.
pub fn run(
    plan: &Plan,
    options: &Options,
    env: &Env,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Ended> {
    let server_cpus = context::cpus(&plan.server_cpus)?;
    let generator_cpus = context::cpus(&plan.generator_cpus)?;
    let judged_cpus = context::judged_cpus(plan, &options.proc, &server_cpus, &generator_cpus);
    let options = &Options { proc: options.proc.on_cpus(judged_cpus), ..options.clone() };
    let cases = plan.cases();
    if cases.is_empty() {
        return Err(Error::invalid("the plan has no case"));
    }
    let (run_dir, mut run, attempts) = match options.resumes {
        true => resume(plan, options, cases, progress)?,
        false => {
            let run_dir = RunDir::create(&options.dir, &plan.text)?;
            (run_dir, facts::run(plan, cases, options, env.clock.wall_ms()), Vec::new())
        }
    };
    run_dir.write_run(&run)?;
    let place = match Place::prepare(plan, options, &run_dir, &generator_cpus) {
        Ok(place) => place,
        Err(error) => {
            run.state = RunState::Interrupted { reason: error.to_string() };
            run.ended_wall_ms = Some(env.clock.wall_ms());
            return run_dir.write_run(&run).and(Err(error));
        }
    };
    let Place { plan_dir, bound, scratch, record } = place;
    let context = Context {
        plan,
        plan_dir: &plan_dir,
        options,
        env,
        stop,
        run_dir: &run_dir,
        scratch: scratch.path(),
        server_cpus,
    };
    let mut runner = Runner::new(&context, run, attempts, progress);
    let result = runner.run_all();
    let stopped = runner.end();
    let Runner { mut run, attempts, .. } = runner;
    drop(bound);
    // First, since it makes room for the rest.
    drop(scratch);
    drop(record);
    let (state, error) = match (result, stopped) {
        (Ok(()), Ok(())) => (RunState::Complete, None),
        (Err(Problem::Stopped), _) => {
            (RunState::Interrupted { reason: "it was interrupted".to_owned() }, None)
        }
        (Err(Problem::Subject(why) | Problem::Case(why)), _) => {
            let reason = why.clone();
            (RunState::Interrupted { reason }, Some(Error::invalid(why)))
        }
        (Err(Problem::Run(error)), _) | (Ok(()), Err(error)) => {
            (RunState::Interrupted { reason: error.to_string() }, Some(error))
        }
    };
    run.state = state;
    run.ended_wall_ms = Some(env.clock.wall_ms());
    let written = run_dir.write_run(&run);
    match error {
        Some(error) => Err(error),
        None => written.map(|()| Ended { run, attempts }),
    }
}

/// What a run needs, and gives back at its end.
struct Place {
    plan_dir: PathBuf,
    bound: Bound,
    scratch: Scratch,
    record: Record,
}

impl Place {
    fn prepare(
        plan: &Plan,
        options: &Options,
        run_dir: &RunDir,
        generator_cpus: &CpuSet,
    ) -> Result<Place> {
        let record = Record::keep(&absolute(&run_dir.path(run_dir::LEFTOVERS))?)?;
        Ok(Place {
            plan_dir: absolute(&plan.dir)?,
            scratch: Scratch::create(&absolute(&scratch_dir(options, run_dir))?)?,
            bound: Bound::to(generator_cpus)?,
            record,
        })
    }
}

/// The earlier run of the directory, if it was of the same plan, programs and machine. What it has
/// left, if it was killed, is removed.
fn resume(
    plan: &Plan,
    options: &Options,
    cases: Vec<crate::record::Case>,
    progress: &mut Progress,
) -> Result<(RunDir, Run, Vec<Attempt>)> {
    let (run_dir, Earlier { mut run, attempts }) = RunDir::resume(&options.dir)?;
    let refused = |problem: &str| Err(Error::invalid(problem).with_file(&options.dir));
    if run.plan_checksum != facts::checksum(&plan.text) {
        return refused("the plan has changed since the run began");
    }
    if run.shortened != plan.shortened || run.cases != cases || run.repeats != plan.repeats {
        return refused("the run was made with other options, such as --quick");
    }
    let differences = facts::differences(&run.identity, &facts::identity(plan, options));
    if !differences.is_empty() {
        let problem = "attempts of one run must be alike, and it began with another state:";
        return refused(&format!("{problem} {}", differences.join("; ")));
    }
    let ended = cleanup::remove_leftovers(&run_dir.path(run_dir::LEFTOVERS))?;
    if ended > 0 {
        progress.line(&format!("ended {ended} processes that the killed run had left"));
    }
    run.state = RunState::Running;
    run.ended_wall_ms = None;
    // Other assertions on the same attempts.
    run.comparison.clone_from(&plan.comparison);
    Ok((run_dir, run, attempts))
}

fn scratch_dir(options: &Options, run_dir: &RunDir) -> PathBuf {
    match &options.scratch {
        Some(dir) => dir.join(format!("{}{}", cleanup::SCRATCH_PREFIX, std::process::id())),
        None => run_dir.root().join(cleanup::SCRATCH),
    }
}
