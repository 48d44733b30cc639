//! The parameters of a script.

use crate::op::OpNames;
use crate::target::Target;
use kvant_env::Clock;
use std::path::Path;
use std::sync::Arc;

/// The default seed.
const SEED_DEFAULT: u64 = 1;
/// Seeds are Lua numbers, which are exact up to this, plus the number of threads.
const SEED_MAX: u64 = (1 << 52) - 1;

/// The run, as scripts see it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Resolved; never empty. Scripts see the first in `wrk.host` and the like until the first
    /// request to another one.
    pub targets: Vec<Target>,
    /// Initial `wrk.headers` (`-H`).
    pub headers: Vec<(String, String)>,
    /// `args[1]` and following of `init(args)`; `args[0]` is the first target's URL.
    pub args: Vec<String>,
    /// The number of threads.
    pub thread_count: usize,
    /// Thread `t` seeds its generator with `seed + t`, the main state with `seed + thread_count`.
    pub seed: Option<u64>,
    /// Seed nothing, as wrk2: all states then have the same sequence.
    pub is_wrk2_exact: bool,
    /// Numbers the kinds of requests.
    pub ops: OpNames,
}

/// The parameters of new states.
pub(super) struct Start<'a> {
    /// The script's file, for messages and to find modules.
    pub(super) name: &'a str,
    pub(super) options: &'a Options,
    pub(super) clock: Arc<dyn Clock>,
}

impl Start<'_> {
    /// The directory of modules besides the current one.
    pub(super) fn directory(&self) -> Option<String> {
        let parent = Path::new(self.name).parent()?.to_string_lossy().into_owned();
        (!parent.is_empty() && parent != ".").then_some(parent)
    }

    /// The seed of a thread, or of the main state, if they are seeded.
    pub(super) fn seed(&self, thread: Option<usize>) -> Option<f64> {
        let options = self.options;
        if options.is_wrk2_exact {
            return None;
        }
        let base = options.seed.unwrap_or(SEED_DEFAULT);
        let base = if base <= SEED_MAX { base } else { (base ^ (base >> 52)) & SEED_MAX };
        Some((base + thread.unwrap_or(options.thread_count) as u64) as f64)
    }
}

/// The scheme of a target's URL.
pub(super) fn scheme(target: &Target) -> &'static str {
    if target.is_tls { "https" } else { "http" }
}
