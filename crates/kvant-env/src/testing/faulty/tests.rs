//! The rules of the module header; `power_loss` and `histories` test those about crashes.

use super::*;
use crate::fs::tests as conformance;
use crate::fs::{File, Fs};
use std::time::Instant;

mod histories;
mod in_memory;
mod power_loss;

const SEED: u64 = 1;

fn put(fs: &FaultyFs, path: &str, contents: &[u8]) -> Arc<dyn File> {
    let file = fs.create(Path::new(path)).unwrap();
    file.write_all_at(contents, 0).unwrap();
    file
}

fn contents(fs: &FaultyFs, path: &str) -> Option<Vec<u8>> {
    fs.contents(Path::new(path)).ok()
}

#[track_caller]
fn assert_fails<T>(result: io::Result<T>, kind: ErrorKind) {
    assert_eq!(result.err().map(|error| error.kind()), Some(kind));
}

#[test]
fn keeps_the_contract_of_file_systems() {
    conformance::check(&FaultyFs::new(SEED), Path::new("/"));
    conformance::check_threads(&FaultyFs::new(SEED), Path::new("/"));
    let image = FaultyFs::new(SEED).crash_image(SEED, CrashStyle::Random);
    conformance::check(&image, Path::new("/"));
}

#[test]
fn accessors_show_the_live_state() {
    let fs = FaultyFs::new(SEED);
    fs.create_dir_all(Path::new("/db/sub")).unwrap();
    put(&fs, "/db/sub/b", b"22");
    put(&fs, "/db/a", b"1");
    fs.hard_link(Path::new("/db/a"), Path::new("/db/c")).unwrap();
    let expected = [("/db/a", 1), ("/db/c", 1), ("/db/sub/b", 2)];
    assert_eq!(fs.files(), expected.map(|(path, len_bytes)| (PathBuf::from(path), len_bytes)));
    assert_eq!(contents(&fs, "/db/sub/b").unwrap(), b"22");
    assert_eq!(fs.used_bytes(), 3, "links share their file");
}

#[test]
fn a_fault_fails_a_number_of_operations_on_matching_paths() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/a.log", b"1");
    put(&fs, "/a.table", b"2");
    fs.fail_next(FaultOp::Open, ".log", ErrorKind::PermissionDenied, 2);
    assert_fails(fs.open(Path::new("/a.log")), ErrorKind::PermissionDenied);
    fs.open(Path::new("/a.table")).unwrap();
    fs.create(Path::new("/b.log")).unwrap();
    assert_fails(fs.open_writable(Path::new("/b.log")), ErrorKind::PermissionDenied);
    fs.open(Path::new("/a.log")).unwrap();
    assert_eq!(fs.fault_count(), 2);
}

#[test]
fn a_fault_can_skip_operations_and_be_removed() {
    let fs = FaultyFs::new(SEED);
    let file = put(&fs, "/a", b"1");
    fs.fail_after(2, FaultOp::Read, "", ErrorKind::Other, 10);
    file.read_exact_at(&mut [0], 0).unwrap();
    file.read_exact_at(&mut [0], 0).unwrap();
    assert_fails(file.read_exact_at(&mut [0], 0), ErrorKind::Other);
    fs.clear_faults();
    file.read_exact_at(&mut [0], 0).unwrap();
}

#[test]
fn every_operation_can_fail_and_then_changes_nothing() {
    use FaultOp::*;
    let (dir, a, b) = (Path::new("/dir"), Path::new("/dir/a"), Path::new("/dir/b"));
    type Act = fn(&FaultyFs, &dyn File, &Path, &Path, &Path) -> io::Result<()>;
    let acts: [(FaultOp, Act); 15] = [
        (Create, |fs, _, _, _, b| fs.create(b).map(drop)),
        (Open, |fs, _, _, a, _| fs.open(a).map(drop)),
        (Read, |_, file, _, _, _| file.read_exact_at(&mut [0], 0)),
        (SyncData, |_, file, _, _, _| file.sync_data()),
        (SetLen, |_, file, _, _, _| file.set_len(9)),
        (Allocate, |_, file, _, _, _| file.allocate(9)),
        (Rename, |fs, _, _, a, b| fs.rename(a, b)),
        (HardLink, |fs, _, _, a, b| fs.hard_link(a, b)),
        (RemoveFile, |fs, _, _, a, _| fs.remove_file(a)),
        (RemoveDir, |fs, _, dir, _, _| fs.remove_dir(&dir.join("empty"))),
        (RemoveDirAll, |fs, _, dir, _, _| fs.remove_dir_all(dir)),
        (CreateDirAll, |fs, _, _, _, b| fs.create_dir_all(b)),
        (List, |fs, _, dir, _, _| fs.list(dir).map(drop)),
        (SyncDir, |fs, _, dir, _, _| fs.sync_dir(dir)),
        (Lock, |fs, _, _, _, b| fs.lock(b).map(drop)),
    ];
    for (op, act) in acts {
        let fs = FaultyFs::new(SEED);
        fs.create_dir_all(&dir.join("empty")).unwrap();
        let file = put(&fs, "/dir/a", b"1");
        fs.fail_next(op, "", ErrorKind::TimedOut, 1);
        let error = act(&fs, &*file, dir, a, b).expect_err("a fault is injected");
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{op:?}");
        assert_eq!(fs.files(), [(a.to_path_buf(), 1)], "{op:?}");
        act(&fs, &*file, dir, a, b).unwrap();
    }
}

#[test]
fn a_failed_write_has_written_a_part() {
    let fs = FaultyFs::new(SEED);
    let file = fs.create(Path::new("/a")).unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    for _ in 0..50 {
        file.set_len(0).unwrap();
        fs.fail_next(FaultOp::Write, "a", ErrorKind::Other, 1);
        assert_fails(file.write_all_at(b"0123456789", 0), ErrorKind::Other);
        let done = contents(&fs, "/a").unwrap();
        assert!(b"0123456789".starts_with(&done));
        lengths.insert(done.len());
    }
    assert!(lengths.len() > 5, "{lengths:?}");
}

#[test]
fn a_rename_fault_matches_either_path() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/a.tmp", b"");
    fs.fail_next(FaultOp::Rename, "CURRENT", ErrorKind::Other, 1);
    fs.fail_next(FaultOp::Rename, ".tmp", ErrorKind::TimedOut, 1);
    assert_fails(fs.rename(Path::new("/a.tmp"), Path::new("/CURRENT")), ErrorKind::Other);
    assert_fails(fs.rename(Path::new("/a.tmp"), Path::new("/CURRENT")), ErrorKind::TimedOut);
    fs.rename(Path::new("/a.tmp"), Path::new("/CURRENT")).unwrap();
}

#[test]
fn a_slow_disk_delays_operations_and_refuses_nonblocking_reads() {
    const DELAY: Duration = Duration::from_millis(30);
    let fs = FaultyFs::new(SEED);
    let file = put(&fs, "/a", b"1");
    assert!(file.try_read_exact_at(&mut [0], 0).unwrap());
    let duration = |act: &dyn Fn()| {
        let begin = Instant::now();
        act();
        begin.elapsed()
    };
    fs.set_read_delay(DELAY);
    assert!(duration(&|| file.read_exact_at(&mut [0], 0).unwrap()) >= DELAY);
    assert!(!file.try_read_exact_at(&mut [0], 0).unwrap());
    fs.set_read_delay(Duration::ZERO);
    assert!(file.try_read_exact_at(&mut [0], 0).unwrap());
    fs.set_sync_delay(DELAY);
    assert!(duration(&|| file.sync_data().unwrap()) >= DELAY);
    assert!(duration(&|| fs.sync_dir(Path::new("/")).unwrap()) >= DELAY);
}

#[test]
fn a_slow_read_does_not_block_other_threads() {
    let fs = FaultyFs::new(SEED);
    let file = put(&fs, "/a", b"1");
    // Much longer than the rest of the test.
    fs.set_read_delay(Duration::from_secs(30));
    let slow = Arc::clone(&file);
    let reader = std::thread::spawn(move || slow.read_exact_at(&mut [0], 0));
    for number in 0..100 {
        file.write_all_at(b"2", number).unwrap();
        file.sync_data().unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!reader.is_finished());
}

#[test]
fn a_full_disk_writes_what_fits_and_recovers_with_free_space() {
    let fs = FaultyFs::new(SEED);
    let old = put(&fs, "/old", &[1; 60]);
    fs.set_capacity_bytes(Some(100));
    assert_eq!(fs.available_bytes(Path::new("/")).unwrap(), 40);
    let file = fs.create(Path::new("/new")).unwrap();
    file.write_all_at(&[2; 30], 0).unwrap();
    assert_fails(file.write_all_at(&[3; 30], 30), ErrorKind::StorageFull);
    assert_eq!(contents(&fs, "/new").unwrap(), [[2; 30].as_slice(), &[3; 10]].concat());
    assert_eq!(fs.available_bytes(Path::new("/")).unwrap(), 0);
    file.write_all_at(&[4; 40], 0).expect("overwriting needs no space");
    assert_fails(file.write_all_at(&[5; 1], 50), ErrorKind::StorageFull);
    assert_fails(file.allocate(41), ErrorKind::StorageFull);
    assert_fails(file.set_len(41), ErrorKind::StorageFull);
    assert_eq!(file.len_bytes().unwrap(), 40);

    fs.remove_file(Path::new("/old")).unwrap();
    assert_eq!(
        fs.available_bytes(Path::new("/")).unwrap(),
        60,
        "the space of an open file is free, too"
    );
    file.write_all_at(&[6; 60], 40).unwrap();
    old.write_all_at(&[7; 500], 0).expect("a file without a name takes no space");
    fs.set_capacity_bytes(None);
    file.write_all_at(&[8; 1], 1000).unwrap();
}

#[test]
fn replaced_and_truncated_files_free_their_space() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/a", &[1; 10]);
    put(&fs, "/b", &[1; 20]);
    fs.rename(Path::new("/a"), Path::new("/b")).unwrap();
    assert_eq!(fs.used_bytes(), 10);
    fs.hard_link(Path::new("/b"), Path::new("/c")).unwrap();
    fs.remove_file(Path::new("/b")).unwrap();
    assert_eq!(fs.used_bytes(), 10);
    fs.open_writable(Path::new("/c")).unwrap().set_len(4).unwrap();
    assert_eq!(fs.used_bytes(), 4);
    fs.create(Path::new("/c")).unwrap();
    assert_eq!(fs.used_bytes(), 0);
    fs.create_dir_all(Path::new("/dir/sub")).unwrap();
    put(&fs, "/dir/sub/a", &[1; 10]);
    fs.remove_dir_all(Path::new("/dir")).unwrap();
    assert_eq!(fs.used_bytes(), 0);
}

#[test]
fn a_flipped_byte_is_visible_and_durable() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/a", b"abc");
    fs.sync_all();
    fs.flip_byte(Path::new("/a"), 1, 0xff).unwrap();
    assert_eq!(contents(&fs, "/a").unwrap(), [b'a', b'b' ^ 0xff, b'c']);
    let image = fs.crash_image(SEED, CrashStyle::DropUnsynced);
    assert_eq!(contents(&image, "/a"), contents(&fs, "/a"));
    assert_fails(fs.flip_byte(Path::new("/a"), 3, 1), ErrorKind::UnexpectedEof);
    assert_fails(fs.flip_byte(Path::new("/b"), 0, 1), ErrorKind::NotFound);
}
