use super::*;
use kvant_base::Events;
use kvant_base::log::NoLog;
use kvant_env::testing::{FaultOp, FaultyFs, MockClock};
use kvant_env::{Fs, clock::Clock};
use std::fmt::Display;
use std::io;
use std::path::Path;

fn log_sync(level: SyncLevel, clock: Arc<MockClock>) -> LogSync {
    let events = EventSink::new(clock.clone(), Events::new(1));
    LogSync::new(level, clock, events, Arc::new(NoLog))
}

/// Keeps the names of events.
struct Names(NamedMutex<Vec<&'static str>>);

impl Log for Names {
    fn event(&self, _level: Level, name: &'static str, _fields: &[(&str, &dyn Display)]) {
        self.0.lock().push(name);
    }
}

fn log_file(disk: &FaultyFs) -> LogFile {
    let path = Path::new("/000001.wal");
    let file = disk.create(path).expect("created");
    file.write_all_at(b"bytes", 0).expect("written");
    LogFile {
        num: FileNum(1),
        path: path.to_path_buf(),
        file,
        written_bytes: 5,
        synced_bytes: 0,
        doubtful_bytes: 0,
    }
}

#[test]
fn after_a_failed_sync_nothing_counts_as_durable() {
    let disk = FaultyFs::new(1);
    let sync = log_sync(SyncLevel::Os, Arc::new(MockClock::new(0)));
    sync.add_file(log_file(&disk));
    sync.request();
    disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, 1);
    assert!(matches!(sync.sync_due(), Synced::Failed { .. }));
    // Closing checks this before the fence is set.
    assert!(!sync.is_clean());
}

#[test]
fn writes_are_overdue_when_a_sync_is_late_by_more_than_an_interval() {
    let disk = FaultyFs::new(1);
    let clock = Arc::new(MockClock::new(0));
    let sync = log_sync(SyncLevel::Interval(Duration::from_millis(100)), clock.clone());
    assert!(!sync.is_overdue());
    sync.add_file(log_file(&disk));
    clock.advance(Duration::from_millis(200));
    assert!(!sync.is_overdue(), "due for an interval, at {}", clock.monotonic_ns());
    clock.advance(Duration::from_millis(1));
    assert!(sync.is_overdue());
    assert!(matches!(sync.sync_due(), Synced::Done { .. }));
    assert!(!sync.is_overdue());
    clock.advance(Duration::from_secs(10));
    assert!(!sync.is_overdue(), "there is nothing to sync");
}

#[test]
fn a_sync_that_finds_no_space_is_logged_once_until_one_succeeds() {
    let disk = FaultyFs::new(1);
    let names = Arc::new(Names(NamedMutex::new("names", Vec::new())));
    let clock = Arc::new(MockClock::new(0));
    let events = EventSink::new(clock.clone(), Events::new(1));
    let sync = LogSync::new(SyncLevel::Os, clock, events, names.clone());
    sync.add_file(LogFile { doubtful_bytes: 5, ..log_file(&disk) });
    for _ in 0..2 {
        disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
        sync.request();
        assert!(matches!(sync.sync_due(), Synced::NotDue(_)));
        assert!(sync.put_off_error().is_some());
    }
    assert_eq!(*names.0.lock(), ["sync_put_off"]);
    sync.request();
    assert!(matches!(sync.sync_due(), Synced::Done { .. }));
    assert!(sync.put_off_error().is_none());
    assert_eq!(*names.0.lock(), ["sync_put_off"]);
    sync.add_file(LogFile { num: FileNum(2), doubtful_bytes: 5, ..log_file(&disk) });
    disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
    sync.request();
    assert!(matches!(sync.sync_due(), Synced::NotDue(_)));
    assert_eq!(*names.0.lock(), ["sync_put_off"; 2]);
}
