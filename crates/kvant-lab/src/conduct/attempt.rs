//! One attempt: runs the load of a case on a running subject and writes its files.
//!
//! Threads: the caller's runs the phases; a load beside has one that runs its phase, and each load
//! has its event loops.

use super::beside::{Beside, Gate};
use super::clocks;
use super::context::{Context, Problem};
use super::debt;
use super::external;
use super::intervention::{Intervener, Trigger};
use super::judge;
use super::load::{self, Started};
use super::log::IntervalLog;
use super::measurement::{Measured, Measurement, result_file};
use super::memory_probe;
use super::observe::{Observer, Scope};
use super::progress::Progress;
use super::run_dir::AttemptDir;
use super::stage;
use super::subject::Running;
use super::tasks::{self, Order, Task};
use super::what_if::Slowing;
use crate::plan::Requests;
use crate::record::{AttemptVerdict, Case, ClockMatch, PhaseKind};
use kvant_base::Error;
use kvant_base::lock::NamedMutex;
use kvant_load::find_max::{self, FindMaxConfig, Means, Purpose};
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
    /// How the subject's clocks relate to ours, if it is on another machine.
    pub(super) clock: Option<ClockMatch>,
    /// The most important figures in a line.
    pub(super) figures: String,
    /// What limits the trust in it, a sentence each.
    pub(super) notes: Vec<String>,
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
        nodes: running.nodes.clone(),
        kvant: running.server.clone().filter(|_| running.is_kvant),
        shares_clock: running.shares_clock,
        is_profiled: resolved.phase.is_profiled,
        has_history: order.of_case.case.kind == PhaseKind::Hold,
        stop: context.stop.clone(),
    })?;
    let beside = match &resolved.workload.beside {
        Some(planned) => {
            let planned = tasks::beside(order, planned).map_err(Problem::Case)?;
            let beside = Beside::start(context, &planned, running, &task);
            Some(beside.map_err(failed("the load beside"))?)
        }
        None => None,
    };
    let intervener = Intervener::start(context, running, order.of_case.repeat)?;
    let slowing = Slowing::new(context, order, running);
    let gate = beside.as_ref().and_then(Beside::gate);
    let measured = match &resolved.workload.requests {
        Requests::Command { .. } => {
            gate.iter().for_each(Gate::open);
            external::run(context, resolved, running, progress)
        }
        _ => {
            let trigger = intervener.as_ref().map(Intervener::trigger);
            let slowing = slowing.clone();
            let begin = Begin { gate, observer: &observer, trigger, slowing };
            measure(context, order, running, &task, begin, dir, progress)
        }
    };
    let is_whole = measured
        .as_ref()
        .is_ok_and(|measured| measured.phases.iter().all(|phase| !phase.outcome.is_cut_short));
    let beside = beside.map(|beside| beside.finish(!is_whole));
    // The account of a saturated subject includes what the requests left to do, except beside a
    // recording: that is of the load.
    if measured.as_ref().is_ok_and(|measured| measured.is_closed)
        && resolved.workload.changes_data
        && !resolved.phase.is_profiled
    {
        stage::wait_until_idle(context, &resolved.subject, running, progress);
    }
    let trials = intervener.map(Intervener::finish);
    let observed = observer.finish();
    let measured = measured?;
    let beside = beside.transpose().map_err(failed("the load beside"))?;

    dir.write("load.json", measured.file.to_json().as_bytes())?;
    if let Some(beside) = &beside {
        beside.write(dir)?;
    }
    dir.write_json("watch.json", &observed.watch)?;
    if let Some(trials) = &trials {
        dir.write_json("trials.json", trials)?;
    }
    if let Some(slowing) = &slowing {
        dir.write_json("what-if.json", &slowing.phases())?;
    }
    if let Some(stats) = &observed.stats {
        dir.write_json("stats.json", stats)?;
    }
    if let Some(events) = &observed.events {
        dir.write_json("events.json", events)?;
    }
    if let Some(history) = &observed.history {
        dir.write("history.json", history)?;
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
        beside: beside.as_ref().map(|beside| &beside.measured),
        pause: observed.pause.as_deref(),
        watch: &observed.watch,
        cpu_count: context.cpu_count(),
        is_machine_judged: measured.file.phases.iter().all(|phase| phase.outcome.machine.is_some()),
        subject_end: running.end(),
        is_stopped: context.stop.is_requested(),
    });
    let kind = order.of_case.case.kind;
    let debt = debt::note(kind, &measured, observed.stats.as_deref());
    let slow_memory = measured.start_ns.and_then(|start_ns| {
        let lengths_ns = measured.phases.iter().map(|phase| phase.outcome.measured_ns);
        let end_ns = start_ns + lengths_ns.sum::<u64>();
        memory_probe::note(&observed.watch.slow_memory, start_ns, end_ns)
    });
    let is_remote_kvant = running.is_kvant && !running.shares_clock;
    let clock = is_remote_kvant.then(|| clocks::note(observed.clock.as_ref()));
    Ok(Done {
        verdict,
        measure_start_ns: measured.start_ns,
        rate_per_s: task.rate_per_s(),
        maximum: measured.maximum(),
        figures: measured.figures(),
        notes: measured
            .notes(kind)
            .into_iter()
            .chain(debt)
            .chain(slow_memory)
            .chain(clock)
            .collect(),
        clock: observed.clock,
        is_final: false,
    })
}

/// What begins with a load.
struct Begin<'a> {
    /// The load beside.
    gate: Option<Gate>,
    observer: &'a Observer,
    /// What makes suspects happen.
    trigger: Option<Trigger>,
    /// What slows the subject down.
    slowing: Option<Arc<Slowing>>,
}

fn measure(
    context: &Context<'_>,
    order: &Order<'_>,
    running: &Running,
    task: &Task,
    begin: Begin<'_>,
    dir: &AttemptDir,
    progress: &mut Progress,
) -> Result<Measurement, Problem> {
    let workload = &order.resolved.workload;
    let Started { mut load, config, ops } =
        load::start(context, workload, &running.target).map_err(failed("the load"))?;
    let _attached = context.stop.attach(load.stopper());
    if running.end().is_some() {
        // It ended before the load could be told.
        load.stopper().stop();
    }
    load.watch_machine(context.options.proc.clone(), &running.nodes);
    let Begin { gate, observer, trigger: intervention, slowing } = begin;
    let (profile, stats) = (observer.profile_trigger(), observer.stats_so_far());
    if gate.is_some() || slowing.is_some() {
        let slowing = slowing.clone();
        load.before_beginning(Box::new(move || {
            slowing.iter().for_each(|slowing| slowing.begin());
            gate.iter().for_each(Gate::wait);
        }));
    }
    // The begin of the measured time of the current phase, and of the first.
    let begun = Arc::new(NamedMutex::new("lab_begun", (None, None)));
    load.before_measuring(Box::new({
        let begun = Arc::clone(&begun);
        move |start_ns| {
            let mut begun = begun.lock();
            *begun = (Some(start_ns), begun.1.or(Some(start_ns)));
            profile.begin();
            intervention.iter().for_each(Trigger::begin);
        }
    }));
    let mut log = IntervalLog::create(dir.path("load.hlog"))?;
    let mut note = String::new();
    let mut second = Second::default();
    // What ends the run, not only the attempt.
    let mut log_failure = None;
    let mut run_phase = |load: &mut kvant_load::Load, phase: &Phase, label: &str| {
        note.clear();
        note.push_str(label);
        let outcome = load.run(phase, &mut |interval| {
            let (start_ns, _) = *begun.lock();
            // The first error ends the phase, which may pass on more intervals.
            if log_failure.is_none() {
                let written = log.write(interval, &ops.all(), start_ns, &*context.env.clock);
                log_failure = written.err();
            }
            if let Some(text) = second.add(interval) {
                progress.now(&format!("{} {note}: {text}", name(order.of_case.case)));
            }
            log_failure.is_none()
        })?;
        match &log_failure {
            Some(error) => Err(error.clone()),
            None => Ok::<Outcome, Error>(outcome),
        }
    };
    let mut results = Vec::new();
    let mut phases = Vec::new();
    let mut found = None;
    let mut run_task = || match task {
        Task::Phases(planned) => {
            for (label, phase) in planned {
                let outcome = run_phase(&mut load, phase, label)?;
                if let (Some(slowing), (Some(start_ns), _)) = (&slowing, *begun.lock()) {
                    slowing.end(start_ns + outcome.measured_ns);
                }
                let verdict = verdict::judge(&outcome);
                results.push(PhaseResult::of(&outcome, label, Some(&verdict)));
                let is_over = outcome.is_cut_short;
                phases.push(Measured { outcome, verdict });
                if is_over {
                    break;
                }
            }
            Ok(())
        }
        Task::FindMax { settle, measure } => {
            let goals = &context.plan.objectives;
            let warmup_min = order.resolved.subject.warmup_min;
            let means = Means {
                run: &mut |phase, attempt| {
                    // A server that compiles itself is warm before the first measured time.
                    let is_first = results.is_empty();
                    let warmup_min = if is_first { warmup_min } else { Duration::ZERO };
                    let phase = &Phase { warmup: phase.warmup.max(warmup_min), ..*phase };
                    let left = kvant_load::report::progress::clock(attempt.time_left);
                    let label = attempt.purpose.name();
                    let outcome = run_phase(&mut load, phase, &format!("{label}, {left} left"))?;
                    let verdict = verdict::judge(&outcome);
                    // Of several holds at 80 %, the last is the figure.
                    let is_repeat = |earlier: &&mut PhaseResult| {
                        attempt.purpose == Purpose::At80 && earlier.label == label
                    };
                    let repeated = results.iter_mut().filter(is_repeat);
                    repeated.for_each(|earlier| earlier.label += ", disturbed");
                    results.push(PhaseResult::of(&outcome, label, Some(&verdict)));
                    Ok(outcome)
                },
                slo: &|outcome| {
                    let checked = goals.iter().map(|goal| goal.check(outcome, None));
                    let missed = checked.filter(|goal| !goal.is_met).map(|goal| goal.to_string());
                    let start_ns = begun.lock().0.unwrap_or(0);
                    let end_ns = start_ns + outcome.measured_ns;
                    missed.chain(debt::growth(&stats.lock(), start_ns, end_ns)).collect()
                },
                each_point: &mut |_| {},
            };
            let config = FindMaxConfig { settle: *settle, measure: *measure };
            found = Some(find_max::find_max(config, means)?);
            Ok(())
        }
    };
    let has_run: kvant_base::Result<()> = run_task();
    if let Some(error) = log_failure {
        return Err(error.into());
    }
    has_run.map_err(failed("the load"))?;
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

/// A failed load, as of a script, fails its attempt; the run continues.
fn failed(what: &str) -> impl Fn(Error) -> Problem {
    move |error| Problem::Subject(format!("{what} failed: {error}"))
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
