//! Lua scripts, compatible with wrk and wrk2.
//!
//! LuaJIT runs a script in one state per thread, which makes the requests of that thread, and in
//! the main state, which runs `setup(thread)` and `done(summary, latency, requests)`. The top level
//! runs in each state. Scripts can read latencies as in wrk2 and as in wrk 4, and use `delay()` of
//! wrk 4.
//!
//! 1. Names, values and order of calls are those of wrk and wrk2, including their surprises:
//!    `wrk.format` modifies the headers that it is given, `wrk.body` stays until it is changed, and
//!    `request()` of the first thread is called once before the run for a check; that request is
//!    not sent.
//! 2. An error of a script ends the run with file and line; wrk and wrk2 print it and continue.
//! 3. Each thread's random number generator has its own seed before the script starts (not with
//!    `is_wrk2_exact`).
//! 4. `wrk.tag` (a string, or nil) names the kind of the requests that `request()` returns, until
//!    the script changes it. `wrk.thread_id` counts from 0 and is nil in the main state;
//!    `wrk.threads` is the number of threads.
//!
//! All libraries of LuaJIT are available, including `ffi` and `debug`: as under wrk, a script can
//! crash the process.
//!
//! Threads: scripts are loaded, and `done` is called, on the caller's thread. Each source calls its
//! own state on the thread that it was moved to.

mod address;
mod batch;
mod classify;
mod failure;
mod random_use;
mod response;
mod source;
mod start;
mod state;
mod stats;
mod thread;

#[cfg(test)]
mod tests;

pub use start::Options;

use crate::outcome::Outcome;
use crate::source::RequestSource;
use kvant_base::{Error, Result};
use kvant_env::{Env, host};
use source::ScriptSource;
use start::{Start, scheme};
use state::State;
use stats::StatsHandle;
use std::path::Path;
use std::sync::Arc;
use thread::{ThreadHandle, ThreadShared};

/// A started script: its top level, `setup` and `init` have run.
pub struct Script {
    main: State,
    /// Kept for `thread:get` after the sources are dropped.
    states: Vec<Arc<State>>,
    sources: Vec<ScriptSource>,
    warnings: Vec<String>,
}

impl Script {
    /// Starts the script in `file`.
    ///
    /// # Errors
    /// `Io` if the file cannot be read. `Invalid` with file and line if the script fails or returns
    /// a malformed request.
    pub fn load(file: &Path, options: &Options, env: &Env) -> Result<Script> {
        let source = host::read_bytes(file).map_err(|error| Error::io("read", file, error))?;
        Script::from_source(&file.to_string_lossy(), &source, options, env)
    }

    /// Starts the script `source`. `name` stands in messages, and modules are also searched in its
    /// directory.
    pub fn from_source(name: &str, source: &[u8], options: &Options, env: &Env) -> Result<Script> {
        let Some(target) = options.targets.first() else {
            return Err(Error::invalid("a script needs a target"));
        };
        let start = Start { name, options, clock: Arc::clone(&env.clock) };
        let main = State::new(&start, None)?;
        main.run(source)?;
        let service =
            target.port.map_or_else(|| scheme(target).to_owned(), |port| port.to_string());
        main.call::<()>("resolve", (target.host.as_str(), service))?;

        let mut script =
            Script { main, states: Vec::new(), sources: Vec::new(), warnings: Vec::new() };
        for thread in 0..options.thread_count {
            script.start_thread(&start, source, thread)?;
        }
        script.warnings.extend(warnings(source, &script.states, options)?);
        for state in &script.states {
            state.tune_collector()?;
        }
        script.main.call::<()>("flush", ())?;
        Ok(script)
    }

    fn start_thread(&mut self, start: &Start<'_>, source: &[u8], thread: usize) -> Result<()> {
        let options = start.options;
        let state = Arc::new(State::new(start, Some(thread))?);
        state.run(source)?;
        let default_address = options.targets[0].addresses.first().cloned();
        let shared = Arc::new(ThreadShared::new(&state.lua, default_address));
        self.main.call::<()>("setup", ThreadHandle(Arc::clone(&shared)))?;
        let url = options.targets[0].url.as_str();
        let args =
            state.args(std::iter::once(url).chain(options.args.iter().map(String::as_str)))?;
        state.call::<()>("init", (ThreadHandle(Arc::clone(&shared)), args))?;
        let mut source = ScriptSource::new(&state, &shared, &options.targets, &options.ops)?;
        if thread == 0 {
            self.warnings.extend(source.verify()?);
        }
        self.sources.push(source);
        self.states.push(state);
        Ok(())
    }

    /// Takes the sources of requests, one per thread.
    pub fn sources(&mut self) -> Vec<Box<dyn RequestSource>> {
        let sources = std::mem::take(&mut self.sources);
        sources.into_iter().map(|source| -> Box<dyn RequestSource> { Box::new(source) }).collect()
    }

    /// Warnings about the script, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Calls the script's `done(summary, latency, requests)`, if it has one.
    pub fn done(&self, outcome: &Outcome) -> Result<()> {
        if !self.main.defines("done")? {
            return Ok(());
        }
        let summary = stats::summary(&self.main.lua, outcome)
            .map_err(|error| self.main.failed("done", &error))?;
        let latency = StatsHandle::of_latencies(outcome.response());
        let requests = StatsHandle::of_rates(
            outcome.threads.iter().flat_map(|thread| thread.rates.iter().copied()),
        );
        self.main.call::<()>("done", (summary, latency, requests))?;
        self.main.call::<()>("flush", ())
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

/// Warnings about the script's use of random numbers.
fn warnings(source: &[u8], states: &[Arc<State>], options: &Options) -> Result<Vec<String>> {
    if !random_use::uses_random(source) {
        return Ok(Vec::new());
    }
    let seeds: Vec<Option<f64>> =
        states.iter().map(|state| state.call("seed_of_script", ())).collect::<Result<_>>()?;
    let first = seeds.first().copied().flatten();
    let warning = match first {
        None if seeds.iter().any(Option::is_some) => return Ok(Vec::new()),
        None if options.is_wrk2_exact => {
            "this script never seeds its generator: every thread sends the same sequence".to_owned()
        }
        None => {
            "this script never seeds its generator: under wrk2 every thread would send the same sequence; \
                 here each thread has its own seed"
                .to_owned()
        }
        Some(seed) if seeds.len() > 1 && seeds.iter().all(|other| *other == first) => format!(
            "this script seeds the generator of each thread with the same number ({seed}): every thread sends the \
             same sequence; add wrk.thread_id to the seed"
        ),
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![warning])
}
