//! One load: its phases, and everything that is printed and written about them.
//!
//! wrk2's text goes to standard output, followed by what wrk2 does not have; progress and warnings
//! go to standard error.

use super::facts::{self, Done};
use super::judgement::{EXIT_BROKEN, Judge};
use super::outputs::Outputs;
#[cfg(feature = "profiler")]
use super::own_profile::OwnProfile;
use super::settings::LoadSettings;
use super::sources;
use super::targets;
use super::watchdog::Watchdog;
use crate::commands::signals::Stop;
use crate::exit::print;
use kvant_base::Result;
use kvant_env::Env;
use kvant_env::host::procfs::ProcFs;
use kvant_load::report::json::{FindMaxFacts, ResultFile};
use kvant_load::report::progress::Progress;
use kvant_load::report::{hgrm, summary, wrk2};
use kvant_load::script::Script;
use kvant_load::verdict::{self, Verdict};
use kvant_load::{Interval, Load, OpNames, Outcome, Phase, Rate};
use std::io::{self, IsTerminal, Stderr};

/// A started load, whose threads wait for phases.
pub(super) struct Run<'a> {
    pub(super) settings: &'a LoadSettings,
    env: Env,
    ops: OpNames,
    load: Load,
    progress: LiveProgress,
    outputs: Outputs,
    #[cfg(feature = "profiler")]
    own_profile: Option<OwnProfile>,
    result: ResultFile,
    judge: Judge<'a>,
    watchdog: Option<Watchdog<'a>>,
    script: Option<Script>,
}

struct LiveProgress {
    progress: Progress<Stderr>,
    is_quiet: bool,
}

impl<'a> Run<'a> {
    /// Starts the load that `settings` describe.
    pub(super) fn start(settings: &'a LoadSettings, stop: &Stop) -> Result<Run<'a>> {
        let env = Env::posix();
        let ops = OpNames::default();
        let config = targets::connect(&settings.common)?;
        let (sources, script) = sources::make(settings, &config.targets, &ops, &env)?;
        let judge = Judge::new(&settings.results.asserts, settings.results.baseline.as_deref())?;
        let outputs = Outputs::create(&settings.results)?;
        let result = facts::result(settings, &config);
        let mut load = Load::start(config, sources, ops.clone(), env.clone())?;
        let stopper = load.stopper();
        stop.on_request(move || stopper.stop());
        load.watch_machine(ProcFs::system(), &[]);
        #[cfg(feature = "profiler")]
        let own_profile = {
            let output = settings.results.profile.clone();
            output.map(|output| OwnProfile::new(output, &mut load, &env))
        };
        Ok(Run {
            settings,
            env,
            ops,
            load,
            progress: LiveProgress {
                progress: Progress::new(io::stderr(), io::stderr().is_terminal()),
                is_quiet: settings.common.is_quiet,
            },
            outputs,
            #[cfg(feature = "profiler")]
            own_profile,
            result,
            judge,
            watchdog: settings
                .results
                .aborts_on_fail
                .then(|| Watchdog::new(&settings.results.asserts)),
            script,
        })
    }
}

impl Run<'_> {
    /// Runs a phase for each rate and prints wrk2's text for each.
    pub(super) fn steps(mut self, rates: &[Rate]) -> Result<u8> {
        let mut phases = Vec::with_capacity(rates.len());
        for (index, &rate) in rates.iter().enumerate() {
            let phase = Phase {
                rate,
                warmup: self.settings.warmup,
                duration: self.settings.duration,
                request_count_max: self.settings.request_count_max,
            };
            print(self.header())?;
            let done = self.phase(&phase, index, rates.len())?;
            self.print_phase(&done)?;
            let is_over = self.is_aborted(&done)? || done.outcome.is_cut_short;
            phases.push(done);
            if is_over {
                break;
            }
        }
        if phases.len() > 1 {
            let table: Vec<(Outcome, Verdict)> =
                phases.iter().map(|done| (done.outcome.clone(), done.verdict.clone())).collect();
            print(summary::steps(&table))?;
        }
        self.finish(&phases, 0, None)
    }

    /// Sets the prefix of the following progress lines.
    pub(super) fn set_note(&mut self, note: String) {
        self.progress.progress.set_note(note);
    }

    /// Runs one phase; shows progress and appends to the interval log.
    pub(super) fn phase(&mut self, phase: &Phase, index: usize, count: usize) -> Result<Done> {
        let Run { env, ops, load, progress, outputs, watchdog, .. } = self;
        let mut logged = Ok(());
        if let Some(watchdog) = watchdog {
            watchdog.begin(phase, &self.judge);
        }
        progress.show(|progress| progress.begin(phase, index, count));
        let result = load.run(phase, &mut |interval: &Interval| {
            progress.show(|progress| progress.second(interval));
            if let Some(hlog) = &mut outputs.hlog
                && logged.is_ok()
            {
                logged =
                    hlog.write(|writer| writer.write(interval, &ops.all(), env.clock.wall_ms()));
            }
            let is_broken =
                watchdog.as_mut().is_some_and(|watchdog| watchdog.is_broken_by(interval, ops));
            logged.is_ok() && !is_broken
        });
        progress.show(Progress::end);
        #[cfg(feature = "profiler")]
        if let Some(own_profile) = &mut self.own_profile {
            own_profile.stop()?;
        }
        let outcome = result?;
        logged?;
        Ok(Done { label: String::new(), verdict: verdict::judge(&outcome), outcome })
    }

    /// Whether a broken assertion ends the load; prints which one.
    fn is_aborted(&mut self, done: &Done) -> Result<bool> {
        let Some(watchdog) = &mut self.watchdog else {
            return Ok(false);
        };
        let broken = watchdog.broken(done, &self.judge);
        if let Some(broken) = &broken {
            print(format!("Ended at a broken assertion: {broken}\n"))?;
        }
        Ok(broken.is_some())
    }

    /// The lines that wrk2 prints before it measures.
    pub(super) fn header(&self) -> String {
        let settings = self.settings;
        let config = &settings.common.config;
        let urls: Vec<&str> = config.targets.iter().map(|target| target.url.as_str()).collect();
        let header = wrk2::Header {
            url: &urls.join(" "),
            duration: settings.duration,
            thread_count: config.thread_count,
            connection_count: config.connection_count,
        };
        match settings.request_count_max {
            Some(count) => wrk2::header_of_requests(count, &header),
            None => wrk2::header(&header),
        }
    }

    /// Prints wrk2's block of a phase, the output of the script's `done()`, and the summary.
    pub(super) fn print_phase(&self, done: &Done) -> Result<()> {
        let Done { outcome, verdict, .. } = done;
        let parts = wrk2::Parts {
            latency: self.settings.prints_response,
            uncorrected: self.settings.prints_service,
            exact: self.settings.common.config.wrk2_exact,
        };
        print(wrk2::body(outcome, parts))?;
        if let Some(script) = &self.script {
            script.done(outcome)?;
        }
        let mut text = summary::phase(outcome, verdict);
        if matches!(outcome.phase.rate, Rate::Ramp { .. }) {
            text.push_str(&summary::seconds(outcome));
        }
        print(&text)
    }

    /// Stops the threads, writes the files and checks the assertions on `phases[first_judged..]`;
    /// returns the exit code.
    pub(super) fn finish(
        mut self,
        phases: &[Done],
        first_judged: usize,
        find_max: Option<FindMaxFacts>,
    ) -> Result<u8> {
        self.load.stop();
        let mut judged = self.judge.judge(phases, first_judged);
        let is_aborted = self.watchdog.is_some_and(|watchdog| watchdog.has_broken());
        if is_aborted && judged.exit_code == 0 {
            judged.exit_code = EXIT_BROKEN;
        }
        print(&judged.text)?;
        #[cfg(feature = "profiler")]
        if let Some(own_profile) = self.own_profile {
            own_profile.write()?;
        }
        if let (Some(file), Some(done)) = (self.outputs.hgrm, phases.last()) {
            let response = done.outcome.response();
            file.fill(|out| {
                hgrm::write(out, &response, "Response time from the plan, in milliseconds")
            })?;
        }
        if let Some(file) = self.outputs.json {
            self.result.phases = phases.iter().map(facts::phase).collect();
            self.result.find_max = find_max;
            self.result.assertions = judged.facts;
            file.fill(|out| out.write_all(self.result.to_json().as_bytes()))?;
        }
        Ok(judged.exit_code)
    }
}

impl LiveProgress {
    /// Shows progress. If standard error cannot be written, the load continues without it.
    fn show(&mut self, show: impl FnOnce(&mut Progress<Stderr>) -> io::Result<()>) {
        if !self.is_quiet && show(&mut self.progress).is_err() {
            self.is_quiet = true;
        }
    }
}
