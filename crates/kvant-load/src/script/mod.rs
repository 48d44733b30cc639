//! Lua scripts, as wrk and wrk2 run them.
//!
//! A script is run by LuaJIT in one state a thread, which makes the requests of that thread, and in
//! one more, the main state, in which `setup(thread)` and `done(summary, latency, requests)` are
//! called. Its top level runs in each. Both ways of reading latencies are there, those of wrk2 and
//! of wrk 4, and `delay()` of wrk 4.
//!
//! 1. Scripts see the names, values and order of calls of wrk and wrk2. That includes what
//!    surprises: `wrk.format` writes to the headers that it is given, `wrk.body` stays until it is
//!    changed, and `request()` of the first thread is called once before the run, to see what it
//!    makes; that request is not sent.
//! 2. An error of a script ends the run with file and line; wrk and wrk2 print it and go on.
//! 3. Each thread's generator of random numbers has a seed of its own before the script starts (not
//!    with `is_wrk2_exact`).
//! 4. `wrk.tag` (a string, or nil) names the kind of the requests that `request()` returns, until
//!    the script changes it; `wrk.thread_id` counts from 0 and is nil in the main state;
//!    `wrk.threads` is their number.
//!
//! All libraries of LuaJIT are there, `ffi` and `debug` included: a script can break the process,
//! as it can break wrk.
//!
//! Threads: a script is loaded, and `done` called, on the caller's thread; in between each source
//! calls its own state on the thread that it was moved to.

mod address;
mod batch;
mod classify;
mod failure;
mod random_use;
mod response;
mod source;
mod state;
mod stats;
mod thread;

#[cfg(test)]
mod tests;

use crate::op::OpNames;
use crate::outcome::Outcome;
use crate::source::RequestSource;
use crate::target::Target;
use kvant_base::{Error, Result};
use kvant_env::{Clock, Env};
use source::ScriptSource;
use state::State;
use stats::StatsHandle;
use std::path::Path;
use std::sync::Arc;
use thread::{ThreadHandle, ThreadShared};

/// The seed of runs that were given none: runs repeat.
const SEED_DEFAULT: u64 = 1;
/// Seeds are numbers of Lua; up to this every whole one is told apart, with room for the threads.
const SEED_MAX: u64 = (1 << 52) - 1;

/// What a script is told about the run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is loaded, resolved; never empty. Scripts see the first in `wrk.host` and the like until
    /// a request to another is due.
    pub targets: Vec<Target>,
    /// `wrk.headers` at the start (`-H`).
    pub headers: Vec<(String, String)>,
    /// `args[1]` and on of `init(args)`; `args[0]` is the first target's URL.
    pub args: Vec<String>,
    /// How many threads there are.
    pub thread_count: usize,
    /// Thread `t` seeds its generator with `seed + t`, the main state with `seed + thread_count`.
    pub seed: Option<u64>,
    /// Seed nothing, as wrk2: each state then has the same sequence.
    pub is_wrk2_exact: bool,
    /// Where kinds of requests get their numbers.
    pub ops: OpNames,
}

/// A script that has been started: its top level, `setup` and `init` have run.
pub struct Script {
    name: String,
    main: State,
    /// Kept for `thread:get` when the sources are gone.
    states: Vec<Arc<State>>,
    sources: Vec<ScriptSource>,
    warnings: Vec<String>,
    batch_size: usize,
    is_static: bool,
}

/// What states are made from.
struct Start<'a> {
    /// The script's file, for messages and for finding its modules.
    name: &'a str,
    options: &'a Options,
    clock: Arc<dyn Clock>,
}

impl Script {
    /// Starts the script in `file`.
    ///
    /// # Errors
    /// `Io` when the file cannot be read. `Invalid` when the script fails, with file and line, or
    /// does not make requests.
    pub fn load(file: &Path, options: &Options, env: &Env) -> Result<Script> {
        let source = env.fs.read(file).map_err(|error| Error::io("read", file, error))?;
        Script::from_source(&file.to_string_lossy(), &source, options, env)
    }

    /// Starts the script `source`; messages call it `name`, and its modules are looked for in the
    /// directory of `name` also.
    ///
    /// # Errors
    /// As [`Script::load`].
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

        let mut script = Script {
            name: name.to_owned(),
            main,
            states: Vec::new(),
            sources: Vec::new(),
            warnings: Vec::new(),
            batch_size: 0,
            is_static: true,
        };
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
            let verified = source.verify()?;
            self.batch_size = verified.request_count;
            self.warnings.extend(verified.warning);
            self.is_static = source.is_static();
        }
        self.sources.push(source);
        self.states.push(state);
        Ok(())
    }

    /// The sources of requests, one a thread; they are handed out once.
    pub fn sources(&mut self) -> Vec<Box<dyn RequestSource>> {
        let sources = std::mem::take(&mut self.sources);
        sources.into_iter().map(|source| -> Box<dyn RequestSource> { Box::new(source) }).collect()
    }

    /// How many requests the first text of the script has.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Whether the script makes no requests of its own, so that no Lua runs for a request.
    pub fn is_static(&self) -> bool {
        self.is_static
    }

    /// What the user should know about the script, in sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the script defines `done`.
    pub fn has_done(&self) -> bool {
        self.main.defines("done").unwrap_or(false)
    }

    /// Calls the script's `done(summary, latency, requests)`, if it has one.
    ///
    /// # Errors
    /// `Invalid` when that fails.
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
        let Script { name, batch_size, is_static, .. } = self;
        write!(f, "Script({name}, batch_size: {batch_size}, is_static: {is_static})")
    }
}

impl Start<'_> {
    /// Where the script's modules may be, besides the current directory.
    fn directory(&self) -> Option<String> {
        let parent = Path::new(self.name).parent()?.to_string_lossy().into_owned();
        (!parent.is_empty() && parent != ".").then_some(parent)
    }

    /// The seed of a thread, or of the main state; `None` for none.
    fn seed(&self, thread: Option<usize>) -> Option<f64> {
        let options = self.options;
        if options.is_wrk2_exact {
            return None;
        }
        let base = options.seed.unwrap_or(SEED_DEFAULT);
        let base = if base <= SEED_MAX { base } else { (base ^ (base >> 52)) & SEED_MAX };
        Some((base + thread.unwrap_or(options.thread_count) as u64) as f64)
    }
}

fn scheme(target: &Target) -> &'static str {
    if target.is_tls { "https" } else { "http" }
}

/// What is wrong with how the script uses random numbers.
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
