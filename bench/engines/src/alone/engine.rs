//! The engine in this process.

use super::Failure;
use kvant_engine::{Db, Options, Resources, Stats, SyncLevel};
use kvant_env::{Env, freed_memory, posix};
use std::path::Path;
use std::time::{Duration, Instant};

const SETTLE_MAX: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(50);
/// Consecutive checks that must find no work.
const QUIET_POLLS: u32 = 10;

/// Opens a database that acknowledges writes once the operating system has them. The allocator is
/// set up as by `kvant serve`.
pub(crate) fn open(dir: &Path, mut options: Options) -> Result<Db, Failure> {
    posix::keep_little_freed_memory();
    options.sync = SyncLevel::Os;
    let (env, resources) = (Env::posix(), Resources::new(&options));
    let (memory, events) = (&resources.memory, &resources.events);
    freed_memory::keep_releasing(&env, memory, events, &resources.log);
    Ok(Db::open(env, dir, options, resources)?)
}

/// Waits until flushes and compactions have caught up.
pub(crate) fn settle(db: &Db) -> Result<Stats, Failure> {
    let deadline = Instant::now() + SETTLE_MAX;
    let mut quiet_polls = 0;
    loop {
        let stats = db.stats();
        quiet_polls = if is_quiet(&stats) { quiet_polls + 1 } else { 0 };
        if quiet_polls == QUIET_POLLS {
            return Ok(stats);
        }
        if Instant::now() > deadline {
            return Err(
                format!("compaction has not caught up after {SETTLE_MAX:?}: {stats:?}").into()
            );
        }
        std::thread::sleep(POLL);
    }
}

fn is_quiet(stats: &Stats) -> bool {
    stats.memtables.sealed_count == 0
        && stats.flushes.running == 0
        && stats.compactions.running == 0
        && stats.compactions.debt_bytes == 0
        && stats.space.obsolete_bytes == 0
}
