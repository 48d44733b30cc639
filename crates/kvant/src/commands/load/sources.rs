//! Makes the sources of requests, one a thread.

use super::settings::{LoadSettings, Requests};
use kvant_base::Result;
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
        Requests::Fixed { pipeline } => Ok(fixed(settings, targets, *pipeline, ops)),
        Requests::Workload(config) => {
            let config = WorkloadConfig { seed, ..config.clone() };
            workload::sources(&config, targets, &settings.common.headers, settings.common.thread_count, ops)
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
) -> Vec<Box<dyn RequestSource>> {
    let op = ops.intern("GET");
    let requests: Vec<Vec<u8>> = targets
        .iter()
        .map(|target| request(target, &settings.common.headers))
        .collect();
    let source = FixedSource::new(&requests, op, false, pipeline);
    (0..settings.common.thread_count)
        .map(|_| -> Box<dyn RequestSource> { Box::new(source.clone()) })
        .collect()
}
