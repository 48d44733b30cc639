//! Makes the loads of an attempt from the plan's workloads.

use super::context::Context;
use crate::plan::{Requests, Workload};
use kvant_base::{Error, ErrorKind, Result};
use kvant_load::request::{self, HeaderBlock};
use kvant_load::script::{Options, Script};
use kvant_load::source::fixed::FixedSource;
use kvant_load::{Load, LoadConfig, OpNames, RequestSource, Target, workload};
use std::path::Path;
use std::time::Duration;

/// Length of the intervals of `load.hlog`: the resolution of the heat map.
const INTERVAL: Duration = Duration::from_millis(100);

/// How much a load beside gives way: a tenth of the CPU time of others that want all of it.
const NICE_BESIDE: i32 = 10;

/// A started load.
pub(super) struct Started {
    pub(super) load: Load,
    pub(super) config: LoadConfig,
    pub(super) ops: OpNames,
}

/// Starts the threads of a workload's load on `target`.
///
/// # Errors
/// A script that fails, or a workload that is not valid.
pub(super) fn start(
    context: &Context<'_>,
    workload: &Workload,
    target: &Target,
) -> Result<Started> {
    let ops = OpNames::default();
    let mut config = LoadConfig {
        targets: vec![target.clone()],
        thread_count: workload.thread_count,
        connection_count: workload.connection_count,
        timeout: workload.timeout,
        arrival: workload.arrival,
        seed: workload.seed,
        ok_statuses: workload.ok_statuses.clone(),
        spin: workload.spin,
        interval: INTERVAL,
        ..LoadConfig::default()
    };
    if let Requests::Native(native) = &workload.requests {
        config.ok_statuses = config.ok_statuses.union(&native.expected_statuses());
    }
    let sources = sources(context, workload, &mut config, &ops)?;
    let load = Load::start(config.clone(), sources, ops.clone(), context.env.clone())?;
    Ok(Started { load, config, ops })
}

/// As [`start`], with threads that give way to others: the load of the case must not wait for the
/// one beside it.
///
/// # Errors
/// As [`start`]; `Io` if there is no further thread.
pub(super) fn start_beside(
    context: &Context<'_>,
    workload: &Workload,
    target: &Target,
) -> Result<Started> {
    with_less_priority(|| start(context, workload, target))
}

/// Runs `work` on a thread with less priority, which threads that it starts inherit: on Linux,
/// threads have a priority of their own.
fn with_less_priority<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let failed = |error| Error::io("start", Path::new("lab-beside"), error);
    std::thread::scope(|scope| {
        let starter = std::thread::Builder::new().name("lab-beside".to_owned());
        let starter = starter.spawn_scoped(scope, || {
            rustix::process::nice(NICE_BESIDE).map_err(|error| failed(error.into()))?;
            work()
        });
        let panicked = |_| Err(Error::new(ErrorKind::Io, "the start of the load beside panicked"));
        starter.map_err(failed)?.join().unwrap_or_else(panicked)
    })
}

fn sources(
    context: &Context<'_>,
    workload: &Workload,
    config: &mut LoadConfig,
    ops: &OpNames,
) -> Result<Vec<Box<dyn RequestSource>>> {
    match &workload.requests {
        Requests::Native(native) => {
            workload::sources(native, &config.targets, &[], config.thread_count, ops)
        }
        Requests::Script { file, args } => {
            let options = Options {
                targets: config.targets.clone(),
                headers: Vec::new(),
                args: args.clone(),
                thread_count: config.thread_count,
                seed: Some(config.seed),
                is_wrk2_exact: false,
                ops: ops.clone(),
            };
            Ok(Script::load(&context.in_plan_dir(file), &options, context.env)?.sources())
        }
        Requests::Fixed { method, path, body } => {
            let target = &mut config.targets[0];
            target.path = format!("{}{path}", target.path.trim_end_matches('/'));
            let op = ops.intern(&format!("{method} {}", path.split('?').next().unwrap_or(path)));
            let headers = HeaderBlock::new(target, &[])?;
            let mut bytes = Vec::new();
            request::append_request(&mut bytes, method, &target.path, &headers, body.as_deref());
            let source = FixedSource::new(&[bytes], op, method == "HEAD", 1);
            let sources = (0..config.thread_count)
                .map(|_| -> Box<dyn RequestSource> { Box::new(source.clone()) });
            Ok(sources.collect())
        }
        Requests::Command { command, .. } => {
            let problem = format!("`{}` is a program, not requests", command.join(" "));
            Err(Error::invalid(problem))
        }
    }
}

/// What makes the requests, for the report.
pub(super) fn requests_text(requests: &Requests) -> String {
    match requests {
        Requests::Native(native) => format!("workload {}, {} keys", native.mix, native.key_count),
        Requests::Script { file, args } => {
            let args: String = args.iter().map(|arg| format!(" {arg}")).collect();
            format!("script {}{args}", file.display())
        }
        Requests::Fixed { method, path, .. } => format!("{method} {path}"),
        Requests::Command { command, .. } => command.join(" "),
    }
}

#[cfg(test)]
mod tests;
