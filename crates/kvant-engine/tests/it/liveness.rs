//! Every waiter is notified, also after failures. Uses real threads: the deterministic spawner
//! polls tasks and would hide a missing notification.

use crate::common::{DIR, small_options};
use kvant_base::ErrorKind;
use kvant_engine::{Db, Resources, SyncLevel};
use kvant_env::Env;
use kvant_env::clock::SystemClock;
use kvant_env::faulty::{FaultOp, FaultyFs};
use kvant_env::spawner::ThreadSpawner;
use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// A deadline far above the duration of these tests.
const PATIENCE: Duration = Duration::from_secs(30);

fn open(disk: &FaultyFs) -> Db {
    let clock = Arc::new(SystemClock::new());
    let env = Env {
        fs: Arc::new(disk.clone()),
        clock: clock.clone(),
        spawner: Arc::new(ThreadSpawner::new(clock)),
    };
    let options = small_options(SyncLevel::Os);
    Db::open(env, Path::new(DIR), options.clone(), Resources::new(&options))
        .expect("the database opens")
}

/// What `work` returns, if it returns.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    outcome.recv_timeout(PATIENCE).expect("the waiter is notified")
}

#[test]
fn a_flush_that_keeps_failing_is_reported_with_its_cause() {
    for (kind, expected) in
        [(io::ErrorKind::StorageFull, ErrorKind::NoSpace), (io::ErrorKind::Other, ErrorKind::Io)]
    {
        let disk = FaultyFs::new(1);
        let db = open(&disk);
        db.put(b"key", b"value", None).expect("written");
        disk.fail_next(FaultOp::Create, ".sst", kind, u64::MAX);
        let waiting = db.clone();
        let error = in_time(move || waiting.flush()).expect_err("no table can be made");
        assert_eq!(error.kind(), expected, "{error}");
        disk.clear_faults();
        let waiting = db.clone();
        in_time(move || waiting.flush()).expect("the flush is retried");
    }
}
