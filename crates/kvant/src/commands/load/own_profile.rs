//! `--profile`: the generator records itself while it measures.
//!
//! Threads: the thread that runs the phases starts and stops the recording.

use crate::commands::profile::output::Output;
use kvant_base::lock::NamedMutex;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Env;
use kvant_load::Load;
use kvant_profiler::collect::{Options, Profiler, StartError};
use kvant_profiler::recording::Recording;
use kvant_profiler::symbols;
use std::sync::Arc;

pub(super) struct OwnProfile {
    output: Output,
    started: Arc<NamedMutex<Option<std::result::Result<Profiler, StartError>>>>,
    recording: Option<Recording>,
}

impl OwnProfile {
    /// Makes `load` start the recording when its measured time begins.
    pub(super) fn new(output: Output, load: &mut Load, env: &Env) -> OwnProfile {
        let started = Arc::new(NamedMutex::new("own_profile", None));
        let (env, starting) = (env.clone(), Arc::clone(&started));
        load.before_measuring(Box::new(move |_| {
            let profiler = Profiler::start(Options::default(), &env, None);
            *starting.lock() = Some(profiler);
        }));
        OwnProfile { output, started, recording: None }
    }

    /// Stops the recording at the end of the measured time.
    pub(super) fn stop(&mut self) -> Result<()> {
        let started = self.started.lock().take();
        if let Some(started) = started {
            let profiler = started.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
            self.recording = Some(profiler.stop());
        }
        Ok(())
    }

    /// Writes the recording, if the measured time has begun.
    pub(super) fn write(self) -> Result<()> {
        let Some(mut recording) = self.recording else {
            return Ok(());
        };
        symbols::resolve(&mut recording);
        self.output.write(&recording)
    }
}
