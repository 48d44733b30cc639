//! Workloads without a script: keys, values and a mix of operations from one seed, at the
//! generator's full speed.
//!
//! [`sources`] makes one [`RequestSource`] per thread from a [`WorkloadConfig`]; [`fill()`] stores
//! all its keys through HTTP. [`key`] specifies the bytes of keys.
//!
//! Invariants:
//! 1. The same configuration, targets and number of threads give the same requests, thread by
//!    thread.
//! 2. Keys do not depend on the seed: a run reads what another one stored.
//! 3. In one pass of a sequential workload the threads together use each key exactly once.
//!
//! Threads: a source belongs to one thread; the byte tables are shared and immutable.

pub mod config;
pub mod fill;
mod head;
pub mod key;
mod lengths;
mod native;
mod permutation;
mod pick;
pub mod value;
mod zipf;

pub use config::{KeyDist, Kind, Mix, WorkloadConfig};
pub use fill::{FillConfig, FillProgress, FillReport, fill};
pub use key::KeyBytes;
pub use value::ValueBytes;

use crate::op::OpNames;
use crate::source::RequestSource;
use crate::target::Target;
use config::check;
use kvant_base::Result;
use native::{NativeSource, Shared};
use std::sync::Arc;

/// The sources of a workload, one per thread. `headers` are names and values that each request has
/// besides `Host` (which they may replace) and `Content-Length`.
///
/// # Errors
/// `Invalid` with all [`WorkloadConfig::problems`], or if a target's URL has a query.
pub fn sources(
    config: &WorkloadConfig,
    targets: &[Target],
    headers: &[(String, String)],
    thread_count: usize,
    ops: &OpNames,
) -> Result<Vec<Box<dyn RequestSource>>> {
    check(config.problems())?;
    let shared = Arc::new(Shared::new(config, targets, headers, ops)?);
    let source = |thread| -> Box<dyn RequestSource> {
        Box::new(NativeSource::new(config, Arc::clone(&shared), thread, thread_count))
    };
    Ok((0..thread_count).map(source).collect())
}

#[cfg(test)]
mod tests;
