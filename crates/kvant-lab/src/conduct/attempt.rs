//! One attempt: runs the load of a case on a running subject and writes its files.
//!
//! Threads: the caller's runs the phases; a load beside has one that runs its phase, and each load
//! has its event loops.

use super::beside::Beside;
use super::context::{Context, Problem};
use super::external;
use super::judge;
use super::load::{self, Started};
use super::log::IntervalLog;
use super::measurement::{Measured, Measurement, result_file};
use super::observe::{Observer, ProfileTrigger, Scope};
use super::progress::Progress;
use super::run_dir::AttemptDir;
use super::subject::Running;
use super::tasks::{self, Order, Task};
use crate::plan::Requests;
use crate::record::{AttemptVerdict, Case};
use kvant_base::lock::NamedMutex;
use kvant_load::find_max::{self, FindMaxConfig, Means};
use kvant_load::report::json::{FindMaxFacts, PhaseResult};
use kvant_load::units::format_metric;
use kvant_load::{Interval, Outcome, Phase, verdict};
use std::sync::Arc;
use std::time::Duration;

/// What an attempt found.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) verdict: AttemptVerdict,
    /// Begin of the measured time by the monotonic clock; `None` if it never began.
    pub(super) measure_start_ns: Option<u64>,
    /// The planned rate, if there is one.
    pub(super) rate_per_s: Option<f64>,
    /// The maximum, if the case finds one.
    pub(super) maximum: Option<f64>,
    /// The most important figures in a line.
    pub(super) figures: String,
    /// Whether no other try can do better.
    pub(super) is_final: bool,
}

/// Runs an attempt.
///
/// # Errors
/// [`Problem`] if it could not begin, or its files cannot be written.
pub(super) fn run(
    context: &Context<'_>,
    order: &Order<'_>,
    running: &Running,
    dir: &AttemptDir,
    progress: &mut Progress,
) -> Result<Done, Problem> {
    let task = tasks::task(order).map_err(Problem::Case)?;
    let resolved = order.resolved;
    let observer = Observer::start(Scope {
        proc: context.options.proc.clone(),
        clock: Arc::clone(&context.env.clock),
        watched: running.watched.clone(),
        kvant: running.server.clone().filter(|_| running.is_kvant),
        shares_clock: running.shares_clock,
        is_profiled: resolved.phase.is_profiled,
    })?;
    let beside = match &resolved.workload.beside {
        Some(planned) => Some(Beside::start(context, planned, running, &task)?),
        None => None,
    };
    let measured = match &resolved.workload.requests {
        Requests::Command { .. } => external::run(context, resolved, running, progress),
        _ => measure(context, order, running, &task, observer.profile_trigger(), dir, progress),
    };
    let beside = beside.map(Beside::finish);
    let observed = observer.finish();
    let measured = measured?;

    dir.write("load.json", measured.file.to_json().as_bytes())?;
    if let Some(beside) = beside {
        beside?.write(dir)?;
    }
    dir.write_json("watch.json", &observed.watch)?;
    if let Some(stats) = &observed.stats {
        dir.write_json("stats.json", stats)?;
    }
    if let Some(events) = &observed.events {
        dir.write_json("events.json", events)?;
    }
    match &observed.profile {
        Some(Ok(recording)) => dir.write("profile.kprof", recording)?,
        Some(Err(why)) => progress.line(&format!("no recording: {why}")),
        None => {}
    }
    dir.sync()?;

    let verdict = judge::verdict(&judge::Evidence {
        phases: &measured.phases,
        found: measured.found.as_ref(),
        pause: observed.pause.as_deref(),
        watch: &observed.watch,
        cpu_count: context.cpu_count(),
        is_machine_judged: measured.file.phases.iter().any(|phase| phase.outcome.machine.is_some()),
        subject_end: running.end(),
        is_stopped: context.stop.is_requested(),
    });
    Ok(Done {
        verdict,
        measure_start_ns: measured.start_ns,
        rate_per_s: task.rate_per_s(),
        maximum: measured.maximum(),
        figures: measured.figures(),
        is_final: false,
    })
}

fn measure(
    context: &Context<'_>,
    order: &Order<'_>,
    running: &Running,
    task: &Task,
    trigger: ProfileTrigger,
    dir: &AttemptDir,
    progress: &mut Progress,
) -> Result<Measurement, Problem> {
    let workload = &order.resolved.workload;
    let Started { mut load, config, ops } = load::start(context, workload, &running.target)?;
    let _attached = context.stop.attach(load.stopper());
    if running.end().is_some() {
        // It ended before the load could be told.
        load.stopper().stop();
    }
    load.watch_machine(context.options.proc.clone());
    // The begin of the measured time of the current phase, and of the first.
    let begun = Arc::new(NamedMutex::new("lab_begun", (None, None)));
    load.before_measuring(Box::new({
        let begun = Arc::clone(&begun);
        move |start_ns| {
            let mut begun = begun.lock();
            *begun = (Some(start_ns), begun.1.or(Some(start_ns)));
            trigger.begin();
        }
    }));
    let mut log = IntervalLog::create(dir.path("load.hlog"))?;
    let mut note = String::new();
    let mut second = Second::default();
    let mut run_phase = |load: &mut kvant_load::Load, phase: &Phase, label: &str| {
        note.clear();
        note.push_str(label);
        let mut logged = Ok(());
        let outcome = load.run(phase, &mut |interval| {
            let starts = *begun.lock();
            // The first error ends the phase, which may pass on more intervals.
            if logged.is_ok() {
                logged = log.write(interval, &ops.all(), starts, &*context.env.clock);
            }
            if let Some(text) = second.add(interval) {
                progress.now(&format!("{} {note}: {text}", name(order.of_case.case)));
            }
            logged.is_ok()
        })?;
        logged?;
        Ok::<Outcome, kvant_base::Error>(outcome)
    };
    let mut results = Vec::new();
    let mut phases = Vec::new();
    let mut found = None;
    match task {
        Task::Phases(planned) => {
            for (label, phase) in planned {
                let outcome = run_phase(&mut load, phase, label)?;
                let verdict = verdict::judge(&outcome);
                results.push(PhaseResult::of(&outcome, label, Some(&verdict)));
                let is_over = outcome.is_cut_short;
                phases.push(Measured { outcome, verdict });
                if is_over {
                    break;
                }
            }
        }
        Task::FindMax { settle, measure } => {
            let goals = &context.plan.objectives;
            let means = Means {
                run: &mut |phase, attempt| {
                    let left = kvant_load::report::progress::clock(attempt.time_left);
                    let label = attempt.purpose.name();
                    let outcome = run_phase(&mut load, phase, &format!("{label}, {left} left"))?;
                    let verdict = verdict::judge(&outcome);
                    results.push(PhaseResult::of(&outcome, label, Some(&verdict)));
                    Ok(outcome)
                },
                slo: &|outcome| {
                    let checked = goals.iter().map(|goal| goal.check(outcome, None));
                    checked.filter(|goal| !goal.is_met).map(|goal| goal.to_string()).collect()
                },
                each_point: &mut |_| {},
            };
            let config = FindMaxConfig { settle: *settle, measure: *measure };
            found = Some(find_max::find_max(config, means)?);
        }
    }
    load.stop();
    log.finish()?;
    let texts: Vec<String> =
        context.plan.objectives.iter().map(|goal| goal.text().to_owned()).collect();
    let mut file = result_file(&config, &load::requests_text(&workload.requests));
    file.phases = results;
    file.find_max = found.as_ref().map(|found| FindMaxFacts::of(found, &texts));
    let start_ns = begun.lock().1;
    Ok(Measurement { start_ns, phases, found, is_closed: task.is_closed(), file })
}

/// `SUBJECT, WORKLOAD, PHASE, CELL`.
pub(super) fn name(case: &Case) -> String {
    let cell: String = case
        .cell
        .iter()
        .filter(|value| !value.is_empty())
        .map(|value| format!(", {value}"))
        .collect();
    format!("{}, {}, {}{cell}", case.subject, case.workload, case.phase)
}

/// Adds intervals to whole seconds for the progress.
#[derive(Default)]
struct Second {
    completed: u64,
    errors: u64,
    start_ns: u64,
}

impl Second {
    /// What the last second was, if one has ended.
    fn add(&mut self, interval: &Interval) -> Option<String> {
        if interval.start_ns < self.start_ns {
            *self = Second::default();
        }
        self.completed += interval.completed;
        self.errors += interval.errors.total();
        let length = Duration::from_nanos(interval.end_ns - self.start_ns);
        if length < Duration::from_secs(1) {
            return None;
        }
        let rate = self.completed as f64 / length.as_secs_f64();
        let errors = match self.errors {
            0 => String::new(),
            errors => format!(", {errors} errors"),
        };
        *self = Second { start_ns: interval.end_ns, ..Second::default() };
        Some(format!("{}/s{errors}", format_metric(rate)))
    }
}
