//! The disk's own fsync: the reference for subjects that sync each write.

use crate::plan::{Plan, SubjectKind};
use crate::record::FsyncFacts;
use kvant_base::{Error, Result};
use kvant_env::Env;
use std::path::Path;
use std::time::Duration;

/// Appends, of which each is synced: enough for p99.9.
pub(super) const COUNT: usize = 4_000;
/// Bytes of each, about those of a record of a log.
const APPEND: [u8; 64] = [b'x'; 64];
/// A slow disk gets fewer.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Whether a subject of the plan syncs each write, in any cell of its sweep.
pub(super) fn is_needed(plan: &Plan) -> bool {
    let is_always = |name: &str, value: &str| name == "sync" && value == "always";
    let by_option = plan.subjects.iter().any(|subject| match &subject.kind {
        SubjectKind::Kvant { options, .. } => {
            options.iter().any(|(name, value)| is_always(name, value))
        }
        SubjectKind::Command { .. } | SubjectKind::Url(_) => false,
    });
    let by_axis =
        plan.sweep.iter().any(|axis| axis.values.iter().any(|value| is_always(&axis.name, value)));
    by_option || by_axis
}

/// Times up to `count_max` appends to a file in `dir`, where subjects have their stores.
///
/// # Errors
/// `Io` and `NoSpace` with the file.
pub(super) fn measure(env: &Env, dir: &Path, repeat: u32, count_max: usize) -> Result<FsyncFacts> {
    let path = dir.join("fsync");
    let failed = |error| Error::io("sync", &path, error);
    let file = env.fs.create(&path).map_err(failed)?;
    let mut taken_ns = Vec::with_capacity(count_max);
    let until_ns = env.clock.monotonic_ns() + TIME_MAX.as_nanos() as u64;
    for index in 0..count_max.max(1) {
        file.write_all_at(&APPEND, (index * APPEND.len()) as u64).map_err(failed)?;
        let start_ns = env.clock.monotonic_ns();
        file.sync_data().map_err(failed)?;
        let end_ns = env.clock.monotonic_ns();
        taken_ns.push(end_ns - start_ns);
        if end_ns >= until_ns {
            break;
        }
    }
    drop(file);
    env.fs.remove_file(&path).map_err(failed)?;
    taken_ns.sort_unstable();
    let at = |part: f64| taken_ns[((taken_ns.len() - 1) as f64 * part).round() as usize];
    Ok(FsyncFacts {
        repeat,
        count: taken_ns.len() as u64,
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        max_ns: at(1.0),
    })
}

#[cfg(test)]
mod tests;
