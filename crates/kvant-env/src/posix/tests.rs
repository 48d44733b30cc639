use super::*;
use crate::conformance;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that is removed at the end of a test that passes.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> TempDir {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kvant-env-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

#[test]
fn behaves_like_every_file_system() {
    let dir = TempDir::new();
    conformance::check(&PosixFs::new(), &dir.0);
    conformance::check_threads(&PosixFs::new(), &dir.0);
}

/// Whether this system reads a file that it has just written without waiting, where it can at all.
#[test]
fn what_the_page_cache_holds_is_read_without_waiting() {
    let dir = TempDir::new();
    let path = dir.0.join("a");
    fs::write(&path, vec![7; 100_000]).unwrap();
    let posix = PosixFs::new();
    let file = posix.open(&path).unwrap();
    let mut buffer = vec![0; 50_000];
    let filled = file.try_read_exact_at(&mut buffer, 10_000).unwrap();
    if posix.always_waits.load(Ordering::Relaxed) {
        assert!(!filled);
    } else {
        // Memory that is short may have cost the page cache these pages at any moment: then a read
        // brings them back.
        for _ in 0..100 {
            if file.try_read_exact_at(&mut buffer, 10_000).unwrap() {
                assert!(buffer.iter().all(|byte| *byte == 7));
                return;
            }
            file.read_exact_at(&mut buffer, 10_000).unwrap();
        }
        panic!("what has just been read is never in the page cache");
    }
}

#[test]
fn a_system_that_cannot_read_without_waiting_is_asked_once() {
    let dir = TempDir::new();
    let path = dir.0.join("a");
    fs::write(&path, b"contents").unwrap();
    let posix = PosixFs::new();
    let file = posix.open(&path).unwrap();
    posix.always_waits.store(true, Ordering::Relaxed);
    assert!(!file.try_read_exact_at(&mut [0; 8], 0).unwrap());
    for errno in [libc::ENOSYS, libc::EOPNOTSUPP, libc::EINVAL] {
        assert!(is_refusal(&io::Error::from_raw_os_error(errno)), "{errno}");
    }
    for errno in [libc::EAGAIN, libc::EIO] {
        assert!(!is_refusal(&io::Error::from_raw_os_error(errno)), "{errno}");
    }
}

#[test]
fn zeros_are_written_where_space_cannot_be_reserved() {
    let dir = TempDir::new();
    let path = dir.0.join("a");
    fs::write(&path, b"abc").unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    write_zeros_to(&file, 2).unwrap();
    write_zeros_to(&file, 200_000).unwrap();
    let contents = fs::read(&path).unwrap();
    assert_eq!(contents.len(), 200_000);
    assert_eq!(&contents[..3], b"abc");
    assert!(contents[3..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_lock_held_through_another_open_file_names_the_owner_written_in_it() {
    let dir = TempDir::new();
    let path = dir.0.join("LOCK");
    fs::write(&path, b"4711\n").unwrap();
    let other = fs::File::open(&path).unwrap();
    other.try_lock().unwrap();
    let refused = PosixFs::new().lock(&path).err().unwrap();
    assert!(refused.to_string().ends_with("is locked by process 4711"), "{refused}");
    fs::write(&path, b"").unwrap();
    let refused = PosixFs::new().lock(&path).err().unwrap();
    let holder = match cfg!(target_os = "linux") {
        true => format!("process {}", std::process::id()),
        false => "an unknown process".to_owned(),
    };
    assert!(refused.to_string().ends_with(&format!("is locked by {holder}")), "{refused}");
}

#[test]
fn names_that_are_not_utf8_are_not_listed() {
    let dir = TempDir::new();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff");
    if fs::write(dir.0.join(name), b"").is_ok() {
        assert!(PosixFs::new().list(&dir.0).unwrap().is_empty());
    }
}

#[test]
fn what_is_created_only_its_owner_may_read() {
    use std::os::unix::fs::PermissionsExt;

    let dir = TempDir::new();
    let posix = PosixFs::new();
    posix.create_dir_all(&dir.0.join("parent/data")).unwrap();
    posix.create(&dir.0.join("parent/data/a")).unwrap();
    let _lock = posix.lock(&dir.0.join("parent/data/LOCK")).unwrap();
    for (name, mode) in [
        ("parent", 0o700),
        ("parent/data", 0o700),
        ("parent/data/a", 0o600),
        ("parent/data/LOCK", 0o600),
    ] {
        let permissions = fs::metadata(dir.0.join(name)).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn an_owned_directory_that_was_replaced_is_not_synced() {
    let dir = TempDir::new();
    let (data, moved) = (dir.0.join("data"), dir.0.join("moved"));
    fs::create_dir(&data).unwrap();
    let posix = PosixFs::new();
    let held = posix.lock(&data.join("LOCK")).unwrap();
    posix.sync_dir(&data).unwrap();
    fs::rename(&data, &moved).unwrap();
    posix.sync_dir(&data).unwrap();
    fs::create_dir(&data).unwrap();
    assert!(posix.sync_dir(&data).is_err());
    drop(held);
    posix.sync_dir(&data).unwrap();
}

#[test]
fn mapped_memory_starts_at_a_huge_page_where_it_has_one() {
    for bytes in [1, 4096, 5000, 1 << 20, HUGE_PAGE_BYTES, 5 << 20] {
        let mapping = Mapping::new(bytes).unwrap();
        assert!(mapping.bytes() >= bytes && mapping.bytes() < bytes + page_bytes());
        let alignment = if bytes < HUGE_PAGE_BYTES { page_bytes() } else { HUGE_PAGE_BYTES };
        assert!(mapping.start().addr().get().is_multiple_of(alignment), "{bytes}");
    }
}
