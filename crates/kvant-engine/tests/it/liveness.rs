//! Every waiter is notified, also after failures. Uses real threads: the deterministic spawner
//! polls tasks and would hide a missing notification.

use crate::common::{DIR, small_options};
use kvant_base::ErrorKind;
use kvant_engine::{Db, Resources, SyncLevel, WriteBatch};
use kvant_env::Env;
use kvant_env::clock::SystemClock;
use kvant_env::spawner::ThreadSpawner;
use kvant_env::testing::{FaultOp, FaultyFs};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// A deadline far above the duration of these tests.
const PATIENCE: Duration = Duration::from_secs(30);

fn open(disk: &FaultyFs, sync: SyncLevel) -> Db {
    let clock = Arc::new(SystemClock::new());
    let env = Env {
        fs: Arc::new(disk.clone()),
        clock: clock.clone(),
        spawner: Arc::new(ThreadSpawner::new(clock)),
    };
    let options = small_options(sync);
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
        let db = open(&disk, SyncLevel::Os);
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

#[test]
fn a_close_does_not_wait_for_a_completion_that_submits() {
    // Repeated if the close came after the sync, as on a machine without free CPU time.
    assert!((0..10).any(|_| close_during_the_sync_of_a_write_that_submits()));
}

/// Whether the close began while the sync of the first write ran.
fn close_during_the_sync_of_a_write_that_submits() -> bool {
    let disk = FaultyFs::new(1);
    let db = open(&disk, SyncLevel::Always);
    disk.set_sync_delay(Duration::from_millis(300));
    let batch = || {
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"value", None);
        batch
    };
    let (done, outcome) = mpsc::channel();
    let second = (db.clone(), batch());
    let submits = Box::new(move |first| {
        let (db, batch) = second;
        let done_second = done.clone();
        let refused = db.submit(batch, Box::new(move |result| drop(done_second.send(result))));
        if let Err(refused) = refused {
            drop(done.send(Err(refused.error)));
        }
        // The last clone must not end on the sync task.
        drop(thread::spawn(move || drop(db)));
        drop(done.send(first));
    });
    db.submit(batch(), submits).map_err(|refused| refused.error).expect("submitted");
    thread::sleep(Duration::from_millis(100));
    in_time(move || db.close()).expect("closed");
    let mut outcomes: Vec<_> = outcome.iter().map(|result| result.map_err(|e| e.kind())).collect();
    outcomes.sort_by_key(Result::is_err);
    if outcomes == [Ok(()), Ok(())] {
        return false;
    }
    assert_eq!(outcomes, [Ok(()), Err(ErrorKind::Closed)]);
    true
}

/// Whether the second write was submitted while the sync of the first one ran.
fn close_during_a_failing_sync() -> bool {
    let disk = FaultyFs::new(1);
    let db = open(&disk, SyncLevel::Always);
    db.put(b"key", b"value", None).expect("written");
    disk.set_sync_delay(Duration::from_millis(300));
    disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, u64::MAX);
    let batch = || {
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"other", None);
        batch
    };
    let is_closed = Arc::new(AtomicBool::new(false));
    let holds_the_sync_task = {
        let is_closed = Arc::clone(&is_closed);
        Box::new(move |_| {
            while !is_closed.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
        })
    };
    db.submit(batch(), holds_the_sync_task).map_err(|refused| refused.error).expect("submitted");
    thread::sleep(Duration::from_millis(100));
    let (done, outcome) = mpsc::channel();
    let submitted = db.submit(batch(), Box::new(move |result| drop(done.send(result))));
    let closing = db.clone();
    let closed = thread::spawn(move || closing.close());
    in_time(move || {
        while db.get(b"key").is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
    });
    is_closed.store(true, Ordering::Release);
    in_time(move || closed.join().expect("the thread ends")).expect_err("writes are fenced");
    if submitted.is_err() {
        return false;
    }
    let outcome = outcome.recv_timeout(PATIENCE).expect("every write is completed");
    assert_eq!(outcome.expect_err("not synced").kind(), ErrorKind::OutcomeUnknown);
    true
}

#[test]
fn a_write_beside_a_failing_sync_and_a_close_has_an_outcome() {
    // Repeated if the second write came after the sync, as on a machine without free CPU time.
    assert!((0..10).any(|_| close_during_a_failing_sync()));
}
