//! Real threads and files, for what single steps cannot interleave.

use crate::common::{all_records, small_options};
use kvant_engine::{Db, Options, Resources, SyncLevel};
use kvant_env::Env;
use std::path::{Path, PathBuf};

const THREADS: usize = 3;
const WRITES: usize = 200;

/// A directory that is removed at the end of the test.
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

/// A log that the flush task made while a writer made and took one of its own was used after it,
/// though its number was lower: it was removed as flushed while it was written to, and the manifest
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
                    // Back-pressure is not what is tested here.
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
