//! Makes the sources of requests, one per thread.

use super::parse::Body;
use super::settings::{LoadSettings, Requests};
use kvant_base::{Error, Result};
use kvant_env::{Env, host};
use kvant_load::request::{self, HeaderBlock};
use kvant_load::script::{Options, Script};
use kvant_load::source::fixed::FixedSource;
use kvant_load::workload;
use kvant_load::{OpNames, RequestSource, Target};

/// One source per thread, and the script that they call, if there is one.
type Sources = (Vec<Box<dyn RequestSource>>, Option<Script>);

/// Makes the sources that `settings` describe.
pub(super) fn make(
    settings: &LoadSettings,
    targets: &[Target],
    ops: &OpNames,
    env: &Env,
) -> Result<Sources> {
    let headers = &settings.common.headers;
    let load = &settings.common.config;
    let without_script = |sources| (sources, None);
    match &settings.requests {
        Requests::Fixed { method, body, pipeline } => {
            let body = body.as_ref().map(read).transpose()?;
            fixed(settings, targets, method, body.as_deref(), *pipeline, ops).map(without_script)
        }
        Requests::Workload(config) => {
            workload::sources(config, targets, headers, load.thread_count, ops).map(without_script)
        }
        Requests::Script { file, args } => {
            let options = Options {
                targets: targets.to_vec(),
                headers: headers.clone(),
                args: args.clone(),
                thread_count: load.thread_count,
                seed: Some(load.seed),
                is_wrk2_exact: load.wrk2_exact,
                ops: ops.clone(),
            };
            let mut script = Script::load(file, &options, env)?;
            for warning in script.warnings() {
                crate::complain(&format!("warning: {}: {warning}", file.display()));
            }
            Ok((script.sources(), Some(script)))
        }
    }
}

/// Reads a body.
fn read(body: &Body) -> Result<Vec<u8>> {
    match body {
        Body::Text(text) => Ok(text.clone().into_bytes()),
        Body::File(file) => host::read_bytes(file).map_err(|error| Error::io("read", file, error)),
    }
}

/// Sources of one request per target: its URL's path with the given headers.
fn fixed(
    settings: &LoadSettings,
    targets: &[Target],
    method: &str,
    body: Option<&[u8]>,
    pipeline: usize,
    ops: &OpNames,
) -> Result<Vec<Box<dyn RequestSource>>> {
    let op = ops.intern(&op_name(method, targets));
    let request = |target: &Target| {
        let headers = HeaderBlock::new(target, &settings.common.headers)?;
        let mut bytes = Vec::new();
        request::append_request(&mut bytes, method, &target.path, &headers, body);
        Ok(bytes)
    };
    let requests = targets.iter().map(request).collect::<Result<Vec<_>>>()?;
    let source = FixedSource::new(&requests, op, method == "HEAD", pipeline);
    let sources = (0..settings.common.config.thread_count)
        .map(|_| -> Box<dyn RequestSource> { Box::new(source.clone()) });
    Ok(sources.collect())
}

/// Method and path, as for requests of scripts; the method alone if the paths differ.
fn op_name(method: &str, targets: &[Target]) -> String {
    let mut paths = targets.iter().map(|target| target.path.split('?').next().unwrap_or_default());
    let first = paths.next().unwrap_or_default();
    if paths.all(|path| path == first) { format!("{method} {first}") } else { method.to_owned() }
}
