//! Stores all keys of a workload through HTTP, as fast as the server accepts them, and retries each
//! until it is acknowledged.
//!
//! A source tracks its requests ([`RequestSource::follows`]): a key is in one of the states unsent,
//! in flight, waiting for a retry, and acknowledged. A failed request (`408`, `425`, `429`, `5xx`,
//! no response) is retried after the server's `Retry-After`, or with exponential backoff. Meanwhile
//! the source continues with unsent keys, at a lower rate while the server refuses. Any other
//! unsuccessful response ends the fill: a retry would fail as well.
//!
//! Invariants:
//! 1. A complete fill had one success for each of its keys.
//! 2. Memory is bounded by the keys in flight and [`WAITING_MAX`] waiting keys per thread.
//!
//! Threads: sources belong to their threads and update the counters of [`FillProgress`], which any
//! thread may read.

use super::config::{Kind, check};
use super::native::Shared;
use crate::config::{LoadConfig, Phase, Rate};
use crate::load::Load;
use crate::op::OpNames;
use crate::outcome::Outcome;
use crate::record::Interval;
use crate::source::RequestSource;
use kvant_base::Result;
use kvant_env::Env;
use source::FillSource;
use std::sync::Arc;
use std::time::Duration;

mod config;
mod progress;
mod source;

pub use config::{FillConfig, PIPELINE_MAX, WAITING_MAX};
pub use progress::FillProgress;

/// The result of a fill.
#[derive(Clone, Debug)]
pub struct FillReport {
    /// Keys to store.
    pub key_count: u64,
    /// Acknowledged keys, each counted once.
    pub stored_keys: u64,
    /// Bytes of acknowledged keys and values.
    pub stored_bytes: u64,
    /// Retries.
    pub resent: u64,
    /// Duration of the fill, in nanoseconds.
    pub elapsed_ns: u64,
    /// Why not all keys are stored; `None` if they are.
    pub problem: Option<String>,
    /// The measured phase.
    pub outcome: Outcome,
}

impl FillReport {
    /// Keys stored per second.
    pub fn rate(&self) -> f64 {
        per_second(self.stored_keys, self.elapsed_ns)
    }

    /// Bytes of keys and values stored per second.
    pub fn bytes_rate(&self) -> f64 {
        per_second(self.stored_bytes, self.elapsed_ns)
    }
}

fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    count as f64 * 1e9 / elapsed_ns.max(1) as f64
}

/// Fills a store. `each_second` gets each interval and the progress; it returns `false` to end the
/// fill early.
///
/// A fill that does not store all keys returns a report with a [`FillReport::problem`].
///
/// # Errors
/// `Invalid` with all [`FillConfig::problems`]; as [`Load::start`] and [`Load::run`].
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

/// The sources of a fill, one per thread, which update `progress`.
fn sources(
    config: &FillConfig,
    headers: &[(String, String)],
    load: &LoadConfig,
    ops: &OpNames,
    progress: &Arc<FillProgress>,
) -> Result<Vec<Box<dyn RequestSource>>> {
    check(config.problems())?;
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
    let problem =
        progress.failure.get().cloned().or_else(|| (stored_keys < key_count).then(unfinished));
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
