//! One run: who is loaded, with which requests, in which phases; and everything that is printed and
//! written of it.
//!
//! wrk2's text goes to standard output, and what wrk2 does not know below it; progress and warnings
//! go to standard error.

use super::facts::{self, Done};
use super::judgement::{EXIT_BROKEN, Judge};
use super::outputs::{Outputs, print};
#[cfg(feature = "profiler")]
use super::own_profile::OwnProfile;
use super::search;
use super::settings::{Common, LoadSettings, Plan, Requests};
use super::signals::Stop;
use super::sources::{self, Sources};
use super::watchdog::Watchdog;
use kvant_base::{Error, Result};
use kvant_env::host::procfs::ProcFs;
use kvant_env::{Env, host};
use kvant_load::report::json::{FindMaxFacts, ResultFile};
use kvant_load::report::progress::Progress;
use kvant_load::report::{hgrm, summary, wrk2};
use kvant_load::script::Script;
use kvant_load::verdict::{self, Verdict};
use kvant_load::{Interval, Load, LoadConfig, OpNames, Outcome, Phase, Rate, StatusSet, Target};
use std::io::{self, IsTerminal, Stderr};
use std::path::Path;

/// Runs the load that `settings` describe; the result is the exit code.
///
/// # Errors
/// What kept it from running, or its results from being written.
pub(super) fn run(settings: &LoadSettings, stop: &Stop) -> Result<u8> {
    let env = Env::posix();
    let ops = OpNames::default();
    let (targets, ca_pem) = reach(&settings.common)?;
    let Sources { sources, script } = sources::make(settings, &targets, &ops, &env)?;
    let judge = Judge::new(&settings.results.asserts, settings.results.baseline.as_deref())?;
    let outputs = Outputs::create(&settings.results)?;
    let config = config(settings, targets, ca_pem);
    let result = facts::result(settings, &config);
    let mut load = Load::start(config, sources, ops.clone(), env.clone())?;
    stop.attach(load.stopper());
    load.watch_machine(ProcFs::system());
    #[cfg(feature = "profiler")]
    let own_profile = {
        let output = settings.results.profile.clone();
        output.map(|output| OwnProfile::new(output, &mut load, &env))
    };
    let run = Run {
        settings,
        env,
        ops,
        load,
        watch: Watch {
            progress: Progress::new(io::stderr(), io::stderr().is_terminal()),
            is_quiet: settings.common.is_quiet,
        },
        outputs,
        #[cfg(feature = "profiler")]
        own_profile,
        result,
        judge,
        watchdog: settings.results.aborts_on_fail.then(|| Watchdog::new(&settings.results.asserts)),
        script,
    };
    match &settings.plan {
        Plan::Steps(rates) => run.steps(rates),
        Plan::FindMax(slo) => search::run(run, slo),
    }
}

/// A run whose threads wait for phases.
pub(super) struct Run<'a> {
    pub(super) settings: &'a LoadSettings,
    env: Env,
    ops: OpNames,
    load: Load,
    watch: Watch,
    outputs: Outputs,
    #[cfg(feature = "profiler")]
    own_profile: Option<OwnProfile>,
    result: ResultFile,
    judge: Judge<'a>,
    watchdog: Option<Watchdog<'a>>,
    script: Option<Script>,
}

/// Who is told while the load goes on.
struct Watch {
    progress: Progress<Stderr>,
    is_quiet: bool,
}

impl Run<'_> {
    /// A phase for each rate, each with wrk2's text.
    fn steps(mut self, rates: &[Rate]) -> Result<u8> {
        let mut phases = Vec::with_capacity(rates.len());
        for (index, &rate) in rates.iter().enumerate() {
            let phase = Phase {
                rate,
                warmup: self.settings.warmup.unwrap_or_default(),
                duration: self.settings.duration,
                request_count_max: self.settings.request_count_max,
            };
            print(&self.header())?;
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
            print(&summary::steps(&table))?;
        }
        self.finish(&phases, 0, None)
    }

    /// What lines of progress begin with from now on.
    pub(super) fn set_note(&mut self, note: String) {
        self.watch.progress.set_note(note);
    }

    /// Runs one phase: progress, the log of intervals, a signal that ends it.
    pub(super) fn phase(&mut self, phase: &Phase, index: usize, count: usize) -> Result<Done> {
        let Run { env, ops, load, watch, outputs, watchdog, .. } = self;
        let mut logged = Ok(());
        if let Some(watchdog) = watchdog {
            watchdog.begin(phase, &self.judge)?;
        }
        watch.tell(|progress| progress.begin(phase, index, count));
        let result = load.run(phase, &mut |interval: &Interval| {
            watch.tell(|progress| progress.second(interval));
            if let Some(hlog) = &mut outputs.hlog {
                logged =
                    hlog.append(|writer| writer.write(interval, &ops.all(), env.clock.wall_ms()));
            }
            let is_broken =
                watchdog.as_mut().is_some_and(|watchdog| watchdog.is_broken_by(interval, ops));
            logged.is_ok() && !is_broken
        });
        watch.tell(Progress::end);
        #[cfg(feature = "profiler")]
        if let Some(own_profile) = &mut self.own_profile {
            own_profile.stop()?;
        }
        let outcome = result?;
        logged?;
        Ok(Done { label: String::new(), verdict: verdict::judge(&outcome), outcome })
    }

    /// Whether the load ends because an assertion is broken; says which.
    fn is_aborted(&mut self, done: &Done) -> Result<bool> {
        let Some(watchdog) = &mut self.watchdog else {
            return Ok(false);
        };
        let broken = watchdog.broken(done, &self.judge)?;
        if let Some(broken) = &broken {
            print(&format!("Ended at a broken assertion: {broken}\n"))?;
        }
        Ok(broken.is_some())
    }

    /// The lines that wrk2 prints before it measures.
    pub(super) fn header(&self) -> String {
        let settings = self.settings;
        let urls: Vec<&str> =
            settings.common.targets.iter().map(|target| target.url.as_str()).collect();
        let header = wrk2::Header {
            url: &urls.join(" "),
            duration: settings.duration,
            thread_count: settings.common.thread_count,
            connection_count: settings.common.connection_count,
        };
        match settings.request_count_max {
            Some(count) => wrk2::header_of_requests(count, &header),
            None => wrk2::header(&header),
        }
    }

    /// wrk2's block of a phase, what the script's `done()` says to it, and what wrk2 does not know.
    pub(super) fn print_phase(&self, done: &Done) -> Result<()> {
        let Done { outcome, verdict, .. } = done;
        let parts = wrk2::Parts {
            latency: self.settings.prints_response,
            uncorrected: self.settings.prints_service,
            exact: self.settings.wrk2_exact,
        };
        print(&wrk2::body(outcome, parts))?;
        if let Some(script) = &self.script {
            script.done(outcome)?;
        }
        let mut text = summary::phase(outcome, verdict);
        if matches!(outcome.phase.rate, Rate::Ramp { .. }) {
            text.push_str(&summary::seconds(outcome));
        }
        print(&text)
    }

    /// Ends the threads, writes the files, judges the phases from number `first_judged` on; the
    /// result is the exit code.
    pub(super) fn finish(
        self,
        phases: &[Done],
        first_judged: usize,
        find_max: Option<FindMaxFacts>,
    ) -> Result<u8> {
        let Run {
            load,
            outputs,
            #[cfg(feature = "profiler")]
            own_profile,
            mut result,
            judge,
            watchdog,
            ..
        } = self;
        load.stop();
        let mut judged = judge.judge(phases, first_judged)?;
        if watchdog.is_some_and(|watchdog| watchdog.has_barked()) && judged.exit_code == 0 {
            judged.exit_code = EXIT_BROKEN;
        }
        print(&judged.text)?;
        #[cfg(feature = "profiler")]
        if let Some(own_profile) = own_profile {
            own_profile.write()?;
        }
        let Outputs { json, hgrm, hlog } = outputs;
        if let Some(hlog) = hlog {
            hlog.finish()?;
        }
        if let (Some(file), Some(done)) = (hgrm, phases.last()) {
            let response = done.outcome.response();
            file.fill(|mut out| {
                hgrm::write(&mut out, &response, "Response time from the plan, in milliseconds")
            })?;
        }
        if let Some(file) = json {
            result.phases = phases.iter().map(facts::phase).collect();
            result.find_max = find_max;
            result.assertions = judged.facts;
            file.fill(|out| out.write_all(result.to_json().as_bytes()))?;
        }
        Ok(judged.exit_code)
    }
}

impl Watch {
    /// Progress is a courtesy: where it cannot be written, the load goes on without.
    fn tell(&mut self, tell: impl FnOnce(&mut Progress<Stderr>) -> io::Result<()>) {
        if !self.is_quiet && tell(&mut self.progress).is_err() {
            self.is_quiet = true;
        }
    }
}

fn config(settings: &LoadSettings, targets: Vec<Target>, ca_pem: Option<Vec<u8>>) -> LoadConfig {
    let expected = match &settings.requests {
        Requests::Workload(workload) => workload.expected_statuses(),
        Requests::Fixed { .. } | Requests::Script { .. } => StatusSet::default(),
    };
    LoadConfig {
        targets,
        thread_count: settings.common.thread_count,
        connection_count: settings.common.connection_count,
        timeout: settings.common.timeout,
        arrival: settings.arrival,
        seed: settings.common.seed,
        ok_statuses: settings.ok_statuses.union(&expected),
        batch_latency: settings.batch_latency,
        wrk2_exact: settings.wrk2_exact,
        spin: settings.spin,
        ca_pem,
    }
}

/// Finds out where the URLs lead, and whether anybody listens there and speaks what they say; and
/// reads the certificates to check servers against.
///
/// # Errors
/// A name that is not known, or a server that cannot be reached or is not believed; a file that
/// cannot be read.
pub(super) fn reach(common: &Common) -> Result<(Vec<Target>, Option<Vec<u8>>)> {
    let ca_pem = ca_pem(common.ca_file.as_deref())?;
    let reach = |target: &Target| {
        let target = target.clone().resolve()?.reach(common.timeout)?;
        target.shake_hands(ca_pem.as_deref(), common.timeout)?;
        Ok(target)
    };
    let targets = common.targets.iter().map(reach).collect::<Result<_>>()?;
    Ok((targets, ca_pem))
}

/// The certificates to check servers against.
///
/// # Errors
/// `Io` with the file that cannot be read.
fn ca_pem(file: Option<&Path>) -> Result<Option<Vec<u8>>> {
    let read = |file: &Path| {
        let text = host::read_text(file).map_err(|error| Error::io("read", file, error))?;
        Ok(text.into_bytes())
    };
    file.map(read).transpose()
}
