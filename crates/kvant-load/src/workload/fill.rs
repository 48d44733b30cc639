//! Stores all keys of a workload through HTTP, as fast as the server takes them: each once, and
//! again until the server has said that it is stored.
//!
//! A source follows its requests ([`RequestSource::follows`]): a key is either not yet sent, in
//! flight, waiting to be sent again, or acknowledged, and never two of these. What fails (`408`,
//! `425`, `429`, `5xx`, no answer) waits for the server's `Retry-After`, or twice as long each
//! time, and is sent again; keys that were not sent yet go on meanwhile, but more slowly while the
//! server refuses. Any other answer that is no success ends the fill: it would be the same again.
//!
//! Invariants:
//! 1. A fill that is complete had one success for each of its keys.
//! 2. Memory is bounded: by keys in flight, and [`WAITING_MAX`] keys that wait in each thread.
//!
//! Threads: sources belong to their threads and add to the counts of [`FillProgress`], which
//! anybody may read.

use super::config::{Kind, Mix, WorkloadConfig};
use super::native::Shared;
use crate::config::{LoadConfig, Phase, Rate};
use crate::load::Load;
use crate::op::OpNames;
use crate::outcome::Outcome;
use crate::record::Interval;
use crate::source::RequestSource;
use kvant_base::Result;
use kvant_base::lock::NamedMutex;
use kvant_env::Env;
use source::FillSource;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

mod source;

/// Most requests on one connection at once.
pub const PIPELINE_MAX: usize = 1_024;
/// Most keys of a thread that wait to be sent again; while there are as many, no other key is sent.
pub const WAITING_MAX: usize = 1 << 16;

/// What a fill is told.
#[derive(Clone, Debug, PartialEq)]
pub struct FillConfig {
    /// Keys, values, paths and seed; its mix, distribution and hit ratio mean nothing here.
    pub workload: WorkloadConfig,
    /// Requests that are written to a connection at once.
    pub pipeline: usize,
    /// How often a key is sent before the fill gives up.
    pub tries_max: u32,
    /// How long the fill may take before it gives up.
    pub time_max: Duration,
}

impl FillConfig {
    /// A fill with the keys and values of `workload`: 16 requests at once, 100 tries, one hour.
    pub fn new(workload: WorkloadConfig) -> FillConfig {
        FillConfig {
            workload: WorkloadConfig { mix: Mix::only(Kind::Put), ..workload },
            pipeline: 16,
            tries_max: 100,
            time_max: Duration::from_secs(3_600),
        }
    }

    /// Everything that is wrong with this fill, a sentence each; empty when it can run.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.workload.problems();
        if !(1..=PIPELINE_MAX).contains(&self.pipeline) {
            problems.push(format!(
                "{} pipelined requests are not within 1 and {PIPELINE_MAX}",
                self.pipeline
            ));
        }
        if self.tries_max == 0 {
            problems.push("0 tries store nothing".into());
        }
        if self.time_max.is_zero() {
            problems.push("a fill needs time".into());
        }
        problems
    }
}

/// How far a fill is.
#[derive(Debug)]
pub struct FillProgress {
    stored_keys: AtomicU64,
    stored_bytes: AtomicU64,
    resent: AtomicU64,
    is_over: AtomicBool,
    failure: NamedMutex<Option<String>>,
}

impl Default for FillProgress {
    fn default() -> FillProgress {
        FillProgress {
            stored_keys: AtomicU64::default(),
            stored_bytes: AtomicU64::default(),
            resent: AtomicU64::default(),
            is_over: AtomicBool::default(),
            failure: NamedMutex::new("fill_failure", None),
        }
    }
}

impl FillProgress {
    /// Keys that the server has acknowledged.
    pub fn stored_keys(&self) -> u64 {
        self.stored_keys.load(Ordering::Relaxed)
    }

    /// Bytes of keys and values that the server has acknowledged.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes.load(Ordering::Relaxed)
    }

    /// Requests that were sent again.
    pub fn resent(&self) -> u64 {
        self.resent.load(Ordering::Relaxed)
    }

    fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    fn fail(&self, message: String) {
        let mut failure = self.failure.lock();
        failure.get_or_insert(message);
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What a fill came to.
#[derive(Clone, Debug)]
pub struct FillReport {
    /// Keys that were to be stored.
    pub key_count: u64,
    /// Keys that the server acknowledged, each counted once.
    pub stored_keys: u64,
    /// Bytes of keys and values that the server acknowledged.
    pub stored_bytes: u64,
    /// Requests that were sent again.
    pub resent: u64,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// Why not all keys are stored; `None` when they are.
    pub problem: Option<String>,
    /// The load that it was.
    pub outcome: Outcome,
}

impl FillReport {
    /// Keys stored a second.
    pub fn rate(&self) -> f64 {
        per_second(self.stored_keys, self.elapsed_ns)
    }

    /// Bytes of keys and values stored a second.
    pub fn bytes_rate(&self) -> f64 {
        per_second(self.stored_bytes, self.elapsed_ns)
    }
}

fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    count as f64 * 1e9 / elapsed_ns.max(1) as f64
}

/// Fills a store. `each_second` sees the interval and how far the fill is; returning `false` from
/// it ends the fill early.
///
/// A fill that does not store all keys is no error of this function: see [`FillReport::problem`].
///
/// # Errors
/// `Invalid` with everything that [`FillConfig::problems`] says; what [`Load::start`] and
/// [`Load::run`] report.
pub fn fill(
    config: &FillConfig,
    headers: &[(String, String)],
    load: LoadConfig,
    env: Env,
    each_second: &mut dyn FnMut(&Interval, &FillProgress) -> bool,
) -> Result<FillReport> {
    let progress = Arc::new(FillProgress::default());
    let ops = OpNames::default();
    let sources = sources(config, headers, &load, &ops, &progress)?;
    let clock = Arc::clone(&env.clock);
    let phase = Phase {
        rate: Rate::Closed,
        warmup: Duration::ZERO,
        duration: config.time_max,
        request_count_max: None,
    };
    let mut load = Load::start(load, sources, ops, env)?;
    let start_ns = clock.monotonic_ns();
    let result = load.run(&phase, &mut |interval| each_second(interval, &progress));
    let elapsed_ns = clock.monotonic_ns() - start_ns;
    load.stop();
    Ok(report(config, &progress, elapsed_ns, result?))
}

/// The sources of a fill, one a thread, which add to `progress`.
fn sources(
    config: &FillConfig,
    headers: &[(String, String)],
    load: &LoadConfig,
    ops: &OpNames,
    progress: &Arc<FillProgress>,
) -> Result<Vec<Box<dyn RequestSource>>> {
    super::check(config.problems())?;
    let shared = Arc::new(Shared::new(&config.workload, &load.targets, headers, ops)?);
    let op = ops.intern(Kind::Put.name());
    let source = |thread| -> Box<dyn RequestSource> {
        let (shared, progress) = (Arc::clone(&shared), Arc::clone(progress));
        Box::new(FillSource::new(config, shared, progress, op, thread, load.thread_count))
    };
    Ok((0..load.thread_count).map(source).collect())
}

fn report(
    config: &FillConfig,
    progress: &FillProgress,
    elapsed_ns: u64,
    outcome: Outcome,
) -> FillReport {
    let key_count = config.workload.key_count;
    let stored_keys = progress.stored_keys();
    let unfinished = || {
        let missing = key_count - stored_keys;
        let why =
            if outcome.is_cut_short { "the fill was interrupted" } else { "the time was over" };
        format!("{missing} of {key_count} keys are not acknowledged: {why}")
    };
    let problem = progress.failure().or_else(|| (stored_keys < key_count).then(unfinished));
    FillReport {
        key_count,
        stored_keys,
        stored_bytes: progress.stored_bytes(),
        resent: progress.resent(),
        elapsed_ns,
        problem,
        outcome,
    }
}
