//! Tests with real threads and files, for interleavings that the deterministic spawner cannot
//! produce.

use crate::common::{all_records, small_options};
use kvant_engine::{Db, Options, Resources, SyncLevel};
use kvant_env::Env;
use std::path::{Path, PathBuf};

const THREADS: usize = 3;
const WRITES: usize = 200;

/// A directory that is removed on drop.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("removed");
    }
}

fn open(dir: &Path) -> Db {
    let options = Options { memtable_bytes: 4096, ..small_options(SyncLevel::Os) };
    Db::open(Env::posix(), dir, options.clone(), Resources::new(&options)).expect("opens")
}

/// Regression: the flush task prepared a log while a writer created one of its own with a higher
/// number. The prepared log was used after it, removed as flushed while in use, and the manifest
/// could not be read again.
#[test]
fn logs_are_used_in_the_order_of_their_numbers() {
    let dir = TempDir(std::env::temp_dir().join(format!("kvant-log-order-{}", std::process::id())));
    let db = open(&dir.0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                for number in 0..WRITES {
                    // Ignores stalls.
                    while db
                        .put(format!("{thread}-{number}").as_bytes(), &[b'v'; 100], None)
                        .is_err()
                    {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert!(db.stats().flushes.count > 5, "{:?}", db.stats().flushes);
    db.close().expect("closed");
    drop(db);
    let records = all_records(&open(&dir.0)).expect("read");
    assert_eq!(records.len(), THREADS * WRITES);
}
