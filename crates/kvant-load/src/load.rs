//! Runs phases of load: starts the worker threads, hands them phases, adds up what they record.
//!
//! Threads: one event loop each, which keeps its connections and its source from phase to phase; the caller's thread
//! adds up.

use crate::config::{LoadConfig, Phase};
use crate::op::OpNames;
use crate::outcome::Outcome;
use crate::record::Interval;
use crate::source::RequestSource;
use kvant_base::Result;
use kvant_env::Env;

/// Worker threads with open connections, ready for phases.
pub struct Load {
    config: LoadConfig,
}

impl Load {
    /// Raises the descriptor limit, starts the threads. Connections are opened when the first phase needs them.
    ///
    /// # Errors
    /// `Invalid` when the configuration contradicts itself (more threads than connections, no target). `Io` when there
    /// are not enough descriptors, with what to do about it, or a thread cannot be started.
    pub fn start(
        config: LoadConfig,
        sources: Vec<Box<dyn RequestSource>>,
        ops: OpNames,
        env: Env,
    ) -> Result<Load> {
        let _ = (sources, ops, env);
        Ok(Load { config })
    }

    /// Runs one phase; returns when its time is over. `each_second` sees the interval of all threads added up, as it ends.
    /// Returning `false` from it ends the phase early.
    ///
    /// # Errors
    /// What a source reported.
    pub fn run(&mut self, phase: &Phase, each_second: &mut dyn FnMut(&Interval) -> bool) -> Result<Outcome> {
        let _ = (phase, each_second, &self.config);
        Err(kvant_base::Error::invalid("not yet"))
    }

    /// Closes all connections and ends the threads.
    pub fn stop(self) {}
}
