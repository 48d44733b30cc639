//! Makes the sources of requests, one a thread.

use super::settings::{LoadSettings, Requests};
use kvant_base::Result;
use kvant_load::request::{self, HeaderBlock};
use kvant_load::source::fixed::FixedSource;
use kvant_load::workload::{self, WorkloadConfig};
use kvant_load::{OpNames, RequestSource, Target};

/// The sources that `settings` ask for.
///
/// # Errors
/// A script that cannot be read or fails at its start; what a workload does not accept.
pub(super) fn make(
    settings: &LoadSettings,
    targets: &[Target],
    seed: u64,
    ops: &OpNames,
) -> Result<Vec<Box<dyn RequestSource>>> {
    match &settings.requests {
        Requests::Fixed { pipeline } => fixed(settings, targets, *pipeline, ops),
        Requests::Workload(config) => {
            let config = WorkloadConfig {
                seed,
                ..config.clone()
            };
            workload::sources(
                &config,
                targets,
                &settings.common.headers,
                settings.common.thread_count,
                ops,
            )
        }
        Requests::Script { .. } => Err(kvant_base::Error::invalid("not yet")),
    }
}

/// `GET` of the URL's path, with the headers that were given.
fn fixed(
    settings: &LoadSettings,
    targets: &[Target],
    pipeline: usize,
    ops: &OpNames,
) -> Result<Vec<Box<dyn RequestSource>>> {
    let op = ops.intern("GET");
    let request = |target: &Target| {
        let headers = HeaderBlock::new(target, &settings.common.headers)?;
        let mut bytes = Vec::new();
        request::append_request(&mut bytes, "GET", &target.path, &headers, None);
        Ok(bytes)
    };
    let requests = targets.iter().map(request).collect::<Result<Vec<_>>>()?;
    let source = FixedSource::new(&requests, op, false, pipeline);
    let sources =
        (0..settings.common.thread_count).map(|_| -> Box<dyn RequestSource> { Box::new(source.clone()) });
    Ok(sources.collect())
}
