//! The engine `leveldb` from the settings.

use crate::settings::Settings;
use kvant_base::log::Level;
use kvant_base::{ErrorKind, Result};
use kvant_engine::{Compression, SyncLevel};
use kvant_env::Env;
use kvant_leveldb::{LevelDb, Options};
use kvant_server::{LevelDbStore, LocalStore};
use std::sync::Arc;

pub(super) fn options(settings: &Settings) -> Options {
    Options {
        sync: match settings.sync {
            SyncLevel::Os => kvant_leveldb::SyncLevel::Os,
            SyncLevel::Interval(interval) => kvant_leveldb::SyncLevel::Interval(interval),
            SyncLevel::Always => kvant_leveldb::SyncLevel::Always,
        },
        memory_bytes: settings.memory_bytes,
        compresses: settings.compression != Compression::None,
    }
}

/// Opens the database; with `--recover-anyway` a damaged one is repaired first.
pub(super) fn open(
    settings: &Settings,
    env: Env,
    resources: kvant_engine::Resources,
) -> Result<Arc<dyn LocalStore>> {
    let (dir, options) = (&settings.data, options(settings));
    let (log, clock) = (Arc::clone(&resources.log), Arc::clone(&env.clock));
    let resources = kvant_leveldb::Resources { memory: resources.memory, log: resources.log };
    let db = match LevelDb::open(env.clone(), dir, options.clone(), resources.clone()) {
        Err(error) if error.kind() == ErrorKind::Corruption && settings.recover_anyway => {
            log.event(Level::Error, "recovering_anyway", &[("error", &error)]);
            let db = LevelDb::repair_and_open(env, dir, options, resources)?;
            log.event(Level::Warn, "repaired", &[("details", &dir.join("LOG").display())]);
            db
        }
        opened => opened?,
    };
    Ok(Arc::new(LevelDbStore::new(db, clock)))
}
