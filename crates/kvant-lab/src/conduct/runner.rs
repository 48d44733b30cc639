//! The order of a run: repeats, cases and tries, and what is written after each.
//!
//! Invariants:
//! 1. Repeats are the outermost loop, so that subjects take turns: in a comparison in the order of
//!    [`order`], each time with a new process and, unless both sides share a store, with stores
//!    that are filled anew for each block.
//! 2. The run ends: tries of a case and repeat are bounded, and so are further tries of the run.
//! 3. A resumed run does what is missing, in the same order.

use super::attempt::{self, Done};
use super::context::{Context, Problem};
use super::facts;
use super::fsync;
use super::maxima::{Maxima, OfCase};
use super::progress::Progress;
use super::stage::Stage;
use super::tasks::Order;
use crate::comparison::order;
use crate::plan::{Resolved, SubjectKind};
use crate::record::{Attempt, AttemptVerdict, Case, PhaseKind, Run, SIDES};
use kvant_base::{Error, Result};
use kvant_load::report::json::ResultFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Tries of a case in a repeat.
const TRIES_MAX: u32 = 3;
/// Further tries of all cases together, as a part of all attempts ...
const FURTHER_TRIES_PART: f64 = 0.5;
/// ... and at least so many.
const FURTHER_TRIES_MIN: u32 = 6;
/// The same for a short form, which promises to take two minutes.
const FURTHER_TRIES_QUICK: u32 = 4;
/// A subject that failed so often one after the other is left alone.
const FAILURES_MAX: u32 = 6;
/// What an attempt takes beside its load, at first.
const OVERHEAD: Duration = Duration::from_secs(2);
/// Phases of a search, about, in lengths of a step.
const SEARCH_STEPS: u32 = 17;

/// A run that goes on.
pub(super) struct Runner<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) run: Run,
    pub(super) attempts: Vec<Attempt>,
    pub(super) progress: &'a mut Progress,
    stage: Stage,
    maxima: Maxima,
    further_tries: u32,
    /// Failures one after the other, by subject.
    failures: BTreeMap<String, u32>,
    left_out: BTreeSet<String>,
    estimate: Estimate,
}

impl<'a> Runner<'a> {
    /// A run with the attempts that there are already. An attempt whose result cannot be read is no
    /// maximum.
    pub(super) fn new(
        context: &'a Context<'a>,
        run: Run,
        attempts: Vec<Attempt>,
        progress: &'a mut Progress,
    ) -> Runner<'a> {
        let mut maxima = Maxima::default();
        for attempt in &attempts {
            let is_disturbed = match &attempt.verdict {
                AttemptVerdict::Valid => false,
                AttemptVerdict::Disturbed(_) => true,
                AttemptVerdict::Failed(_) | AttemptVerdict::CutShort(_) => continue,
            };
            match recorded_maximum(context, &run, attempt) {
                Ok(Some(per_s)) => maxima.add(attempt.case, attempt.repeat, per_s, is_disturbed),
                Ok(None) => {}
                Err(error) => progress.line(&format!("attempt {}: {error}", attempt.number)),
            }
        }
        let further_tries = attempts.iter().filter(|attempt| attempt.try_count > 1).count() as u32;
        Runner {
            context,
            run,
            attempts,
            progress,
            stage: Stage::new(),
            maxima,
            further_tries,
            failures: BTreeMap::new(),
            left_out: BTreeSet::new(),
            estimate: Estimate::default(),
        }
    }

    /// Runs everything that is missing.
    ///
    /// # Errors
    /// What ended the run.
    pub(super) fn run_all(&mut self) -> std::result::Result<(), Problem> {
        self.leave_out_missing();
        let count = self.run.cases.len() * self.run.repeats as usize;
        for repeat in 1..=self.run.repeats {
            self.measure_fsync(repeat)?;
            self.begin_block(repeat)?;
            let cases = self.cases_of(repeat);
            for (index, case) in cases.iter().enumerate() {
                let number = (repeat as usize - 1) * cases.len() + index + 1;
                if self.is_done(case, repeat) || self.left_out.contains(&case.subject) {
                    continue;
                }
                let left = self.estimate.left(self.remaining(&cases[index..], repeat));
                self.progress.set_place(number, count, left);
                let start = Instant::now();
                self.run_case(case, repeat)?;
                self.estimate.add(weight(case), start.elapsed());
            }
        }
        Ok(())
    }

    /// The cases of a repeat in their order. The sides of a comparison stand next to each other, A
    /// first, and change places where B is first.
    fn cases_of(&self, repeat: u32) -> Vec<Case> {
        let mut cases = self.run.cases.clone();
        if self.run.comparison.is_some() && order::is_b_first(self.run.seed, repeat) {
            for index in 1..cases.len() {
                let is_pair = cases[index - 1].subject == SIDES[0]
                    && cases[index].subject == SIDES[1]
                    && cases[index - 1].is_same_but_for_subject(&cases[index]);
                if is_pair {
                    cases.swap(index - 1, index);
                }
            }
        }
        cases
    }

    /// Both sides of a comparison get new stores in each block: a store that was filled once would
    /// make every block differ by its shape.
    fn begin_block(&mut self, repeat: u32) -> Result<()> {
        let is_first = repeat % order::REPEATS_OF_BLOCK == 1;
        if self.run.comparison.is_none() || !is_first || self.context.plan.shares_stores() {
            return Ok(());
        }
        self.stage.stop(self.progress)?;
        self.stage.forget_data()
    }

    /// Measures the disk for a repeat, if a subject waits for it.
    fn measure_fsync(&mut self, repeat: u32) -> Result<()> {
        let is_known = self.run.fsyncs.iter().any(|facts| facts.repeat == repeat);
        if is_known || !fsync::is_needed(self.context.plan) {
            return Ok(());
        }
        self.progress.now("measures the fsync of the disk");
        let facts = fsync::measure(self.context.env, self.context.scratch, repeat, fsync::COUNT)?;
        self.run.fsyncs.push(facts);
        self.context.run_dir.write_run(&self.run)
    }

    /// Stops the running subject.
    ///
    /// # Errors
    /// `Io` if it cannot be signalled.
    pub(super) fn end(&mut self) -> Result<()> {
        let stopped = self.stage.stop(self.progress);
        facts::learn(&mut self.run, &mut self.stage);
        stopped
    }

    fn run_case(&mut self, case: &Case, repeat: u32) -> std::result::Result<(), Problem> {
        let mut resolved = self.context.plan.resolve(case)?;
        // Otherwise repeats would send the same requests at the same times.
        resolved.workload.change_seeds(u64::from(repeat - 1));
        let earlier = self.attempts.iter().filter(|attempt| {
            attempt.case == case.id
                && attempt.repeat == repeat
                && !matches!(attempt.verdict, AttemptVerdict::CutShort(_))
        });
        let mut try_count = earlier.map(|attempt| attempt.try_count).max().unwrap_or(0);
        loop {
            try_count += 1;
            if try_count > 1 {
                self.further_tries += 1;
            }
            let done = self.attempt(case, &resolved, repeat, try_count)?;
            let tries_max = self.further_tries_max();
            let is_over = match &done.verdict {
                AttemptVerdict::Valid => true,
                AttemptVerdict::CutShort(_) if self.context.stop.is_requested() => {
                    return Err(Problem::Stopped);
                }
                AttemptVerdict::Disturbed(_)
                | AttemptVerdict::Failed(_)
                | AttemptVerdict::CutShort(_) => {
                    done.is_final
                        || try_count >= self.tries_max(case)
                        || self.further_tries >= tries_max
                        || self.left_out.contains(&case.subject)
                }
            };
            if is_over {
                return Ok(());
            }
        }
    }

    /// Makes the subject ready, runs an attempt and writes it to the journal.
    fn attempt(
        &mut self,
        case: &Case,
        resolved: &Resolved,
        repeat: u32,
        try_count: u32,
    ) -> std::result::Result<Done, Problem> {
        let context = self.context;
        let number = self.attempts.iter().map(|attempt| attempt.number).max().unwrap_or(0) + 1;
        let dir = context.run_dir.attempt(number)?;
        if self.run.comparison.is_some() {
            // A process that went on would make attempts alike.
            self.stage.stop(self.progress)?;
        }
        let ready = self.stage.make_ready(context, resolved, self.progress);
        facts::learn(&mut self.run, &mut self.stage);
        context.run_dir.write_run(&self.run)?;
        if let Some(running) = self.stage.running().filter(|_| try_count > 1) {
            self.progress.now("waits until the machine is calm");
            let load = Duration::from_nanos(case.duration_ns);
            context.wait_for_calm(&running.watched, &running.nodes, load);
        }
        let clock = &context.env.clock;
        let (start_ns, start_wall_ms) = (clock.monotonic_ns(), clock.wall_ms());
        let done = match (ready, self.stage.running()) {
            (Ok(()), Some(running)) => {
                let of_case = OfCase { plan: context.plan, cases: &self.run.cases, case, repeat };
                let order = Order { of_case, resolved, maxima: &self.maxima };
                attempt::run(context, &order, running, &dir, self.progress)
            }
            (Ok(()), None) => Err(Problem::Subject("does not run".to_owned())),
            (Err(problem), _) => Err(problem),
        };
        if changes_data(resolved) {
            self.stage.mark_changed();
        }
        let done = match done {
            Ok(done) => done,
            Err(Problem::Subject(why)) => Done::failed(format!("{}: {why}", case.subject), false),
            Err(Problem::Case(why)) => Done::failed(why, true),
            // The directory stays, without a line in the journal; a resumed run uses it again.
            Err(problem) => return Err(problem),
        };
        let attempt = Attempt {
            number,
            case: case.id,
            repeat,
            try_count,
            start_ns,
            end_ns: clock.monotonic_ns(),
            measure_start_ns: done.measure_start_ns.unwrap_or(start_ns),
            start_wall_ms,
            rate_per_s: done.rate_per_s,
            seed: resolved.workload.seed,
            clock: done.clock,
            notes: self.stage.note().into_iter().chain(done.notes.clone()).collect(),
            verdict: done.verdict.clone(),
        };
        context.run_dir.append(&attempt)?;
        self.attempts.push(attempt);
        self.note(case, repeat, &done);
        Ok(done)
    }

    /// Remembers what an attempt found and says it.
    fn note(&mut self, case: &Case, repeat: u32, done: &Done) {
        let is_disturbed = matches!(done.verdict, AttemptVerdict::Disturbed(_));
        let has_searched = case.kind == PhaseKind::FindMax || done.maximum.is_some();
        if has_searched && (is_disturbed || done.verdict == AttemptVerdict::Valid) {
            self.maxima.add(case.id, repeat, done.maximum.unwrap_or(0.0), is_disturbed);
        }
        let failures = self.failures.entry(case.subject.clone()).or_default();
        let result = match &done.verdict {
            AttemptVerdict::Valid => {
                *failures = 0;
                done.figures.clone()
            }
            AttemptVerdict::Disturbed(why) => format!("disturbed, does not count: {why}"),
            AttemptVerdict::CutShort(why) => format!("cut short: {why}"),
            AttemptVerdict::Failed(why) => {
                *failures += u32::from(!done.is_final);
                if *failures >= FAILURES_MAX {
                    self.left_out.insert(case.subject.clone());
                }
                format!("failed: {why}")
            }
        };
        let of = match self.run.repeats {
            1 => String::new(),
            _ => format!(" (repeat {repeat})"),
        };
        self.progress.line(&format!("{}{of}: {result}", attempt::name(case)));
        if self.left_out.contains(&case.subject) {
            self.progress.line(&format!("{}: failed too often, is left out", case.subject));
        }
    }

    /// Leaves out subjects whose program is missing, if the plan says how to install it.
    fn leave_out_missing(&mut self) {
        for subject in &self.context.plan.subjects {
            let SubjectKind::Command { command, prepare, install: Some(install), .. } =
                &subject.kind
            else {
                continue;
            };
            let commands = prepare.iter().chain([command, &subject.fill_command]);
            let programs = commands.filter_map(|words| words.first());
            let missing = programs.filter(|program| !self.is_program(program)).min();
            if let Some(program) = missing {
                let text =
                    format!("{} is left out: there is no `{program}`; {install}", subject.name);
                self.progress.line(&text);
                self.left_out.insert(subject.name.clone());
                let facts = self.run.subjects.iter_mut().find(|facts| facts.name == subject.name);
                if let Some(facts) = facts {
                    facts.left_out = Some(format!("there is no `{program}`; {install}"));
                }
            }
        }
    }

    fn is_program(&self, program: &str) -> bool {
        if program.contains('/') {
            // A command that prepares may build it.
            return true;
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
    }

    /// Whether a case needs no further try in a repeat.
    fn is_done(&self, case: &Case, repeat: u32) -> bool {
        let of_case = || {
            self.attempts
                .iter()
                .filter(|attempt| attempt.case == case.id && attempt.repeat == repeat)
        };
        let is_final = |attempt: &Attempt| match attempt.verdict {
            AttemptVerdict::Valid => true,
            AttemptVerdict::Disturbed(_) | AttemptVerdict::Failed(_) => {
                attempt.try_count >= self.tries_max(case)
            }
            AttemptVerdict::CutShort(_) => false,
        };
        of_case().any(is_final)
    }

    /// Tries of a case in a repeat. A search repeats its disturbed steps itself.
    fn tries_max(&self, case: &Case) -> u32 {
        match (case.kind, self.run.shortened.is_empty()) {
            (PhaseKind::FindMax, true) => TRIES_MAX - 1,
            (PhaseKind::FindMax, false) => 1,
            _ => TRIES_MAX,
        }
    }

    fn further_tries_max(&self) -> u32 {
        if !self.run.shortened.is_empty() {
            return FURTHER_TRIES_QUICK;
        }
        let count = self.run.cases.len() as f64 * f64::from(self.run.repeats);
        ((count * FURTHER_TRIES_PART) as u32).max(FURTHER_TRIES_MIN)
    }

    /// The weight of what is left: `cases` of this repeat and the later repeats.
    fn remaining(&self, cases: &[Case], repeat: u32) -> Duration {
        let all: Duration = self.run.cases.iter().map(weight).sum();
        let of_this_repeat: Duration = cases.iter().map(weight).sum();
        of_this_repeat + all * (self.run.repeats - repeat)
    }
}

impl Done {
    fn failed(why: String, is_final: bool) -> Done {
        Done {
            verdict: AttemptVerdict::Failed(why),
            measure_start_ns: None,
            rate_per_s: None,
            maximum: None,
            clock: None,
            figures: String::new(),
            notes: Vec::new(),
            is_final,
        }
    }
}

/// How long the rest takes: the lengths of the loads, corrected by what the earlier ones took.
#[derive(Default)]
struct Estimate {
    planned: Duration,
    taken: Duration,
}

impl Estimate {
    fn add(&mut self, planned: Duration, taken: Duration) {
        self.planned += planned;
        self.taken += taken;
    }

    fn left(&self, planned: Duration) -> Duration {
        if self.planned.is_zero() {
            return planned;
        }
        planned.mul_f64(self.taken.as_secs_f64() / self.planned.as_secs_f64())
    }
}

/// How long a case takes, about.
fn weight(case: &Case) -> Duration {
    let duration = Duration::from_nanos(case.duration_ns);
    let load = match case.kind {
        PhaseKind::FindMax => duration * SEARCH_STEPS,
        PhaseKind::Steps | PhaseKind::Factors => duration * 5,
        PhaseKind::Hold | PhaseKind::Ramp | PhaseKind::Closed | PhaseKind::Command => duration,
    };
    load + OVERHEAD
}

fn changes_data(resolved: &Resolved) -> bool {
    let beside = resolved.workload.beside.as_ref();
    resolved.workload.changes_data || beside.is_some_and(|beside| beside.workload.changes_data)
}

/// The maximum that an earlier attempt found, from its files; 0 if no rate holds.
fn recorded_maximum(context: &Context<'_>, run: &Run, attempt: &Attempt) -> Result<Option<f64>> {
    let Some(case) = run.cases.get(attempt.case) else {
        return Err(Error::invalid(format!("the journal has an unknown case {}", attempt.case)));
    };
    let file: PathBuf =
        context.run_dir.path("attempts").join(format!("{:04}", attempt.number)).join("load.json");
    Ok(match case.kind {
        PhaseKind::FindMax => {
            ResultFile::read(&file)?.find_max.map(|found| found.rate_max_per_s.unwrap_or(0.0))
        }
        PhaseKind::Closed | PhaseKind::Command => {
            ResultFile::read(&file)?.phases.first().map(|phase| phase.outcome.rate_good())
        }
        PhaseKind::Hold | PhaseKind::Steps | PhaseKind::Ramp | PhaseKind::Factors => None,
    })
}
