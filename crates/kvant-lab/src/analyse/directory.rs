//! Reads a run directory.
//!
//! Invariants:
//! 1. A journal that ends in the middle of a line is read up to there: the process ended while it
//!    was written.
//! 2. An attempt with a missing or damaged file is in no figure, and a sentence names the file,
//!    unless the attempt's kind has no such file.

use super::responses::{self, Responses};
use crate::record::{
    Attempt, AttemptVerdict, Case, EventFacts, FORMAT, Run, StatsSample, VERSION, Watch,
};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::host;
use kvant_load::Rate;
use kvant_load::report::json::{PhaseResult, ResultFile};
use kvant_profiler::recording::{self, Recording};
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

/// A run and its attempts.
pub(super) struct Directory {
    path: PathBuf,
    pub(super) run: Run,
    pub(super) attempts: Vec<Attempt>,
    /// Attempts with a file that cannot be read, and why, with the file.
    pub(super) damaged: RefCell<Vec<(u32, String)>>,
}

/// A valid attempt with what was measured.
pub(super) struct Measurement {
    pub(super) attempt: Attempt,
    pub(super) load: ResultFile,
    /// Of the load and of the one beside it.
    pub(super) responses: Responses,
    pub(super) watch: Watch,
    pub(super) stats: Vec<StatsSample>,
}

/// A measured phase of an attempt.
pub(super) struct PhaseOf<'a> {
    pub(super) result: &'a PhaseResult,
    /// Begin of the measured time, monotonic.
    pub(super) start_ns: u64,
    /// End of the measured time, monotonic.
    pub(super) end_ns: u64,
}

impl Directory {
    /// Reads `run.json` and the journal.
    ///
    /// # Errors
    /// `Io`, `Invalid` or `Unsupported` with the file.
    pub(super) fn read(path: &Path) -> Result<Directory> {
        let file = path.join("run.json");
        let run: Run = read_json(&file)?;
        if run.format != FORMAT {
            return Err(Error::invalid("not a run of kvant lab").with_file(&file));
        }
        if run.version > VERSION {
            let problem =
                format!("version {} of a run, and this program knows {VERSION}", run.version);
            return Err(Error::new(ErrorKind::Unsupported, problem).with_file(&file));
        }
        let journal = path.join("journal.jsonl");
        let text = match host::read_text(&journal) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|error| Error::io("read", &journal, error))?,
        };
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let attempts = complete
            .lines()
            .map(|line| {
                let attempt: Attempt = serde_json::from_str(line)
                    .map_err(|error| Error::invalid(error.to_string()).with_file(&journal))?;
                match run.cases.get(attempt.case) {
                    Some(_) => Ok(attempt),
                    None => {
                        let problem = format!("there is no case {}", attempt.case);
                        Err(Error::invalid(problem).with_file(&journal))
                    }
                }
            })
            .collect::<Result<_>>()?;
        Ok(Directory { path: path.to_path_buf(), run, attempts, damaged: RefCell::default() })
    }

    /// The directory of an attempt, relative to the run's.
    pub(super) fn dir_of(attempt: u32) -> String {
        format!("attempts/{attempt:04}")
    }

    /// A file of an attempt.
    pub(super) fn file(&self, attempt: u32, name: &str) -> PathBuf {
        self.path.join(Directory::dir_of(attempt)).join(name)
    }

    /// The valid attempts of a case, in order of repeats, without damaged ones.
    pub(super) fn measurements(&self, case: &Case) -> Vec<Measurement> {
        let valid = self
            .attempts
            .iter()
            .filter(|attempt| attempt.case == case.id && attempt.verdict == AttemptVerdict::Valid);
        let read =
            |attempt: &Attempt| self.unless_damaged(attempt.number, self.measurement(attempt));
        valid.filter_map(read).collect()
    }

    /// What was read of an attempt; otherwise its damage is noted.
    pub(super) fn unless_damaged<T>(&self, attempt: u32, read: Result<T>) -> Option<T> {
        let note = |error: Error| self.damaged.borrow_mut().push((attempt, error.to_string()));
        read.map_err(note).ok()
    }

    fn measurement(&self, attempt: &Attempt) -> Result<Measurement> {
        let number = attempt.number;
        let load = ResultFile::read(&self.file(number, "load.json"))?;
        let mut responses = Responses::of_load(attempt, &load);
        let beside = self.file(number, "beside.json");
        if host::is_file(&beside) {
            let beside = ResultFile::read(&beside)?;
            responses.add_beside(&beside, &self.file(number, "beside.hlog"))?;
        }
        Ok(Measurement {
            attempt: attempt.clone(),
            load,
            responses,
            watch: read_optional(&self.file(number, "watch.json"))?.unwrap_or_default(),
            stats: read_optional(&self.file(number, "stats.json"))?.unwrap_or_default(),
        })
    }

    /// The events of an attempt; none if the subject reports none.
    ///
    /// # Errors
    /// As [`Directory::read`].
    pub(super) fn events(&self, attempt: u32) -> Result<Vec<EventFacts>> {
        Ok(read_optional(&self.file(attempt, "events.json"))?.unwrap_or_default())
    }

    /// The recording of an attempt, if it was profiled.
    ///
    /// # Errors
    /// As [`Directory::read`].
    pub(super) fn recording(&self, attempt: u32) -> Result<Option<Recording>> {
        let file = self.file(attempt, "profile.kprof");
        match host::read_bytes(&file) {
            Ok(bytes) => match recording::decode(&bytes) {
                Ok(recording) => Ok(Some(recording)),
                Err(error) => Err(Error::invalid(error.to_string()).with_file(&file)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &file, error)),
        }
    }
}

impl Measurement {
    /// The phases that are figures, with the name of their step: all, but of a search only that at
    /// 80 %.
    pub(super) fn steps(&self) -> impl Iterator<Item = (String, PhaseOf<'_>)> {
        let is_search = self.load.find_max.is_some();
        let has_steps = self.load.phases.len() > 1;
        let phases = self.load.phases.iter();
        phases.filter(move |phase| !is_search || phase.label == "80 %").map(move |phase| {
            let step = match () {
                () if !phase.label.is_empty() => phase.label.clone(),
                () if has_steps => format!("{:.0}/s", offered(phase.outcome.phase.rate)),
                () => String::new(),
            };
            (step, self.phase(phase))
        })
    }

    /// Begin of the phase after one, if there is one.
    pub(super) fn next_start_ns(&self, phase: &PhaseOf<'_>) -> Option<u64> {
        let starts = self.load.phases.iter().map(|each| responses::begin_ns(&self.attempt, each));
        starts.filter(|start_ns| *start_ns > phase.start_ns).min()
    }

    /// A phase with its times on the monotonic clock.
    fn phase<'a>(&self, result: &'a PhaseResult) -> PhaseOf<'a> {
        let start_ns = responses::begin_ns(&self.attempt, result);
        PhaseOf { result, start_ns, end_ns: start_ns + result.outcome.measured_ns }
    }
}

impl PhaseOf<'_> {
    /// A percentile of the response time, unanswered requests included. `None` if there is none, as
    /// of external generators, or if it says nothing of the subject.
    pub(super) fn percentile_ns(&self, percent: f64) -> Option<f64> {
        self.response_ns(percent).filter(|_| self.is_subjects(percent))
    }

    /// The same, even if much of it is the generator's lateness: the subject's is less then.
    pub(super) fn response_ns(&self, percent: f64) -> Option<f64> {
        let response = &self.result.response_with_unanswered;
        (!response.is_empty()).then(|| response.percentile_ns(percent) as f64)
    }

    /// Whether little of a percentile is the generator's lateness.
    fn is_subjects(&self, percent: f64) -> bool {
        let shares = self.result.verdict.as_ref().map_or(&[][..], |verdict| &verdict.shares);
        let below = shares.iter().rfind(|share| share.percent <= percent);
        let above = shares.iter().find(|share| share.percent >= percent);
        below.into_iter().chain(above).all(|share| share.is_server)
    }
}

/// Whether a percentile is the subject's in most of these phases. Where it is not, the attempts
/// that show it are those in which the subject was slow: their median would not be that of all.
pub(super) fn is_mostly_subjects<'a>(
    phases: impl ExactSizeIterator<Item = &'a PhaseOf<'a>>,
    percent: f64,
) -> bool {
    let all = phases.len();
    2 * phases.filter(|phase| phase.is_subjects(percent)).count() > all
}

/// Planned requests per second at the begin; 0 in a closed loop.
pub(super) fn offered(rate: Rate) -> f64 {
    match rate {
        Rate::Closed => 0.0,
        Rate::Constant(rate) | Rate::Ramp { from: rate, .. } => rate,
    }
}

pub(super) fn read_optional<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    match host::read_text(file) {
        Ok(text) => parse_json(&text, file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", file, error)),
    }
}

fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T> {
    let text = host::read_text(file).map_err(|error| Error::io("read", file, error))?;
    parse_json(&text, file)
}

fn parse_json<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::invalid(error.to_string()).with_file(file))
}

/// The one whose p99 is the median of all.
pub(super) fn of_median_p99(measurements: &[Measurement]) -> Option<&Measurement> {
    let mut ordered: Vec<&Measurement> = measurements.iter().collect();
    let p99 = |one: &Measurement| {
        one.load.phases.last().map_or(0, |phase| phase.response_with_unanswered.percentile_ns(99.0))
    };
    ordered.sort_by_key(|one| p99(one));
    ordered.get(ordered.len().saturating_sub(1) / 2).copied()
}
