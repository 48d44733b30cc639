//! Makes the sources of requests, one a thread.

use super::settings::{Body, LoadSettings, Requests};
use kvant_base::{Error, Result};
use kvant_env::Env;
use kvant_load::request::{self, HeaderBlock};
use kvant_load::script::{Options, Script};
use kvant_load::source::fixed::FixedSource;
use kvant_load::workload::{self, WorkloadConfig};
use kvant_load::{OpNames, RequestSource, Target};

/// Where the requests of a run come from.
pub(super) struct Sources {
    /// One a thread.
    pub(super) sources: Vec<Box<dyn RequestSource>>,
    /// What made them, for `done()` at the end.
    pub(super) script: Option<Script>,
}

/// The sources that `settings` ask for.
///
/// # Errors
/// A script that cannot be read or fails at its start; what a workload does not accept.
pub(super) fn make(
    settings: &LoadSettings,
    targets: &[Target],
    ops: &OpNames,
    env: &Env,
) -> Result<Sources> {
    let common = &settings.common;
    let without_script = |sources| Sources { sources, script: None };
    match &settings.requests {
        Requests::Fixed { method, body, pipeline } => {
            let body = body.as_ref().map(|body| read(body, env)).transpose()?;
            fixed(settings, targets, method, body.as_deref(), *pipeline, ops).map(without_script)
        }
        Requests::Workload(config) => {
            let config = WorkloadConfig { seed: common.seed, ..config.clone() };
            let sources =
                workload::sources(&config, targets, &common.headers, common.thread_count, ops);
            sources.map(without_script)
        }
        Requests::Script { file, args } => {
            let options = Options {
                targets: targets.to_vec(),
                headers: common.headers.clone(),
                args: args.clone(),
                thread_count: common.thread_count,
                seed: Some(common.seed),
                is_wrk2_exact: settings.wrk2_exact,
                ops: ops.clone(),
            };
            let mut script = Script::load(file, &options, env)?;
            for warning in script.warnings() {
                crate::complain(&format!("warning: {}: {warning}", file.display()));
            }
            Ok(Sources { sources: script.sources(), script: Some(script) })
        }
    }
}

/// The bytes of a body.
///
/// # Errors
/// `Io` with the file that cannot be read.
fn read(body: &Body, env: &Env) -> Result<Vec<u8>> {
    match body {
        Body::Text(text) => Ok(text.clone().into_bytes()),
        Body::File(file) => env.fs.read(file).map_err(|error| Error::io("read", file, error)),
    }
}

/// A request of the URL's path, with the headers that were given.
fn fixed(
    settings: &LoadSettings,
    targets: &[Target],
    method: &str,
    body: Option<&[u8]>,
    pipeline: usize,
    ops: &OpNames,
) -> Result<Vec<Box<dyn RequestSource>>> {
    let op = ops.intern(&kind(method, targets));
    let request = |target: &Target| {
        let headers = HeaderBlock::new(target, &settings.common.headers)?;
        let mut bytes = Vec::new();
        request::append_request(&mut bytes, method, &target.path, &headers, body);
        Ok(bytes)
    };
    let requests = targets.iter().map(request).collect::<Result<Vec<_>>>()?;
    let source = FixedSource::new(&requests, op, method == "HEAD", pipeline);
    let sources = (0..settings.common.thread_count)
        .map(|_| -> Box<dyn RequestSource> { Box::new(source.clone()) });
    Ok(sources.collect())
}

/// What the requests are called: method and path, as those of scripts are; the method alone where
/// paths differ.
fn kind(method: &str, targets: &[Target]) -> String {
    let mut paths = targets.iter().map(|target| target.path.split('?').next().unwrap_or_default());
    let first = paths.next().unwrap_or_default();
    if paths.all(|path| path == first) { format!("{method} {first}") } else { method.to_owned() }
}
