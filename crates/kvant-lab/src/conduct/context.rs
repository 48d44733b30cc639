//! What all parts of conduct share: plan, options, environment, directories, CPUs.

use super::judge;
use super::nodes;
use super::options::Options;
use super::process::{self, Process};
use super::run_dir::RunDir;
use super::stop::Stop;
use super::watch::{self, Sampler, Watched};
use crate::plan::{Plan, Subject, SubjectKind};
use kvant_base::{Error, Result};
use kvant_env::host::procfs::ProcFs;
use kvant_env::{Env, host};
use kvant_load::{Address, Target};
use rustix::thread::CpuSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks at a command that runs to its end.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// How long a further try waits for a calm machine, and how long that is looked at.
const CALM_WAIT_MAX: Duration = Duration::from_secs(10);
const CALM_WINDOW: Duration = Duration::from_millis(600);

/// A running experiment.
pub(super) struct Context<'a> {
    pub(super) plan: &'a Plan,
    /// The plan's directory, absolute.
    pub(super) plan_dir: &'a Path,
    pub(super) options: &'a Options,
    pub(super) env: &'a Env,
    pub(super) stop: &'a Stop,
    pub(super) run_dir: &'a RunDir,
    /// Holds the temporary stores.
    pub(super) scratch: &'a Path,
    /// CPUs of subjects.
    pub(super) server_cpus: CpuSet,
}

/// Why something could not be done.
#[derive(Debug)]
pub(super) enum Problem {
    /// The subject failed, in words that follow its name. Other subjects may go on.
    Subject(String),
    /// The case cannot be run, whatever the subject does: there is no maximum that its rate is a
    /// share of.
    Case(String),
    /// The run is to end.
    Stopped,
    /// The run cannot go on.
    Run(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Run(error)
    }
}

impl Context<'_> {
    /// The file that gets the outputs of a subject.
    pub(super) fn log_file(&self, subject: &Subject) -> PathBuf {
        self.run_dir.path("subjects").join(format!("{}.log", file_name(&subject.name)))
    }

    /// A path of the plan.
    pub(super) fn in_plan_dir(&self, path: &Path) -> PathBuf {
        self.plan_dir.join(path)
    }

    /// A command of the plan, in the plan's directory; `places` are replaced in all of its words.
    pub(super) fn command(&self, words: &[String], places: &[(&str, String)]) -> Command {
        let dir = self.plan_dir.display().to_string();
        let word = |word: &String| {
            let with_dir = word.replace("{dir}", &dir);
            places.iter().fold(with_dir, |word, (place, value)| word.replace(place, value))
        };
        let words: Vec<String> = words.iter().map(word).collect();
        let (program, args) =
            words.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        // A path, unlike the name of a program, starts in the plan's directory.
        let program = match program.contains('/') {
            true => self.in_plan_dir(Path::new(program)),
            false => PathBuf::from(program),
        };
        let mut command = Command::new(program);
        command.args(args).current_dir(self.plan_dir);
        command
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// [`Problem::Subject`] if it does not start, fails or takes too long.
    pub(super) fn run_to_end(
        &self,
        command: Command,
        text: &str,
        time_max: Duration,
    ) -> std::result::Result<(), Problem> {
        // Its end must not end a phase.
        let process = Process::start(command, &self.server_cpus, &Stop::default())
            .map_err(|error| Problem::Subject(format!("`{text}` did not start: {error}")))?;
        let until = Instant::now() + time_max;
        loop {
            if let Some(status) = process.wait(LOOK_PERIOD) {
                return match status.success() {
                    true => Ok(()),
                    false => Err(Problem::Subject(format!("`{text}` failed: {status}"))),
                };
            }
            if self.stop.is_requested() {
                return Err(Problem::Stopped);
            }
            if Instant::now() >= until {
                return Err(Problem::Subject(format!("`{text}` has not ended after {time_max:?}")));
            }
        }
    }

    /// The processes of this machine that listen at a target.
    pub(super) fn listeners(&self, target: &Target) -> Watched {
        let proc = &self.options.proc;
        let pids = match target.addresses.first() {
            Some(Address::Tcp(address)) if proc.is_own_address(address.ip()) => {
                proc.tcp_listeners(*address)
            }
            Some(Address::Unix(path)) => proc.unix_listeners(path),
            _ => Vec::new(),
        };
        let own_pid = std::process::id();
        let pids: Vec<u32> = pids.into_iter().filter(|pid| *pid != own_pid).collect();
        if pids.is_empty() { Watched::Nothing } else { Watched::Processes(pids) }
    }

    /// Free space for the temporary stores.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.env.fs.available_bytes(self.scratch).ok()
    }

    /// CPUs whose time is judged.
    pub(super) fn cpu_count(&self) -> u32 {
        self.options.proc.cpu_times().map_or(1, |cpu| cpu.cpu_count)
    }

    /// Waits until others leave the machine alone, but not longer than the load of an attempt
    /// takes.
    pub(super) fn wait_for_calm(&self, watched: &Watched, nodes: &[u32], load: Duration) {
        let until = Instant::now() + load.min(CALM_WAIT_MAX);
        let (proc, clock) = (&self.options.proc, &self.env.clock);
        while Instant::now() < until && !self.stop.is_requested() {
            let (watched, nodes) = (watched.clone(), nodes.to_vec());
            let mut sampler = Sampler::new(proc.clone(), Arc::clone(clock), watched, nodes);
            sampler.sample();
            self.stop.pause(CALM_WINDOW);
            let (watch, _) = sampler.finish();
            let taken = watch::taken(&watch.samples, self.cpu_count());
            if taken.is_none_or(|taken| judge::too_much(&taken).is_none()) {
                return;
            }
        }
    }

    /// `: LINE`, the last line of a log, or nothing.
    pub(super) fn last_line_of(&self, log: &Path) -> String {
        let text = host::read_text(log).unwrap_or_default();
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        last.map(|line| format!(": {}", line.trim())).unwrap_or_default()
    }
}

/// The CPUs of the plan's list, of those that this program may use.
///
/// # Errors
/// `Io`.
pub(super) fn cpus(planned: &[u32]) -> Result<CpuSet> {
    Ok(process::cpu_set(planned, &process::own_cpus()?))
}

/// The CPUs whose time is judged: those of subjects and generator, as the load of others does not
/// disturb. Empty for all CPUs, where a subject or a node of a cluster that runs already may be.
pub(super) fn judged_cpus(
    plan: &Plan,
    proc: &ProcFs,
    server: &CpuSet,
    generator: &CpuSet,
) -> Vec<u32> {
    let is_url = |subject: &Subject| matches!(subject.kind, SubjectKind::Url(_));
    let has_node = |subject| !nodes::on_this_machine(subject, proc).is_empty();
    if plan.subjects.iter().any(|subject| is_url(subject) || has_node(subject)) {
        return Vec::new();
    }
    let is_used = |cpu: &u32| [server, generator].iter().any(|set| set.is_set(*cpu as usize));
    (0..CpuSet::MAX_CPU as u32).filter(is_used).collect()
}

/// Commands of a plan run in its directory, so that paths must not depend on ours.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).map_err(|error| Error::io("find", path, error))
}

/// A name as a file name.
pub(super) fn file_name(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().map(safe).collect()
}

#[cfg(test)]
mod tests;
