use super::*;
use crate::fs::tests as conformance;
use crate::rng::Rng;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that is removed unless the test fails.
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

/// Whether all of the file is in memory for good.
fn is_on_tmpfs(path: &Path) -> bool {
    let tmpfs_magic = 0x0102_1994;
    rustix::fs::statfs(path).unwrap().f_type == tmpfs_magic
}

#[test]
fn keeps_the_contract_of_file_systems() {
    let dir = TempDir::new();
    conformance::check(&PosixFs::new(), &dir.0);
    conformance::check_threads(&PosixFs::new(), &dir.0);
}

#[test]
fn nonblocking_reads_return_what_the_page_cache_holds() {
    let dir = TempDir::new();
    let path = dir.0.join("a");
    fs::write(&path, vec![7; 100_000]).unwrap();
    let posix = PosixFs::new();
    let file = posix.open(&path).unwrap();
    let mut buffer = vec![0; 50_000];
    let filled = file.try_read_exact_at(&mut buffer, 10_000).unwrap();
    if posix.always_blocks.load(Ordering::Relaxed) {
        assert!(!filled);
    } else {
        // Under memory pressure the page cache may lose these pages; a blocking read restores them.
        for _ in 0..100 {
            if file.try_read_exact_at(&mut buffer, 10_000).unwrap() {
                assert!(buffer.iter().all(|byte| *byte == 7));
                return;
            }
            file.read_exact_at(&mut buffer, 10_000).unwrap();
        }
        panic!("pages that were just read are never in the page cache");
    }
}

#[test]
fn forgetting_a_file_frees_its_cached_pages_in_steps_and_keeps_its_contents() {
    let dir = TempDir::new();
    let path = dir.0.join("a");
    let contents = vec![7; (FORGET_STEP_BYTES * 5 / 2) as usize];
    fs::write(&path, &contents).unwrap();
    fs::File::open(&path).unwrap().sync_all().unwrap();
    let posix = PosixFs::new();
    let file = posix.open(&path).unwrap();
    let mut buffer = vec![0; contents.len()];
    let mut is_cached = true;
    // Another process may read the file, or hold some of its pages for a moment.
    for _ in 0..100 {
        let step_count = AtomicU64::new(0);
        let count_step = || _ = step_count.fetch_add(1, Ordering::Relaxed);
        posix.forget_cached(&path, &count_step).unwrap();
        assert_eq!(step_count.into_inner(), 3);
        is_cached = is_cached && file.try_read_exact_at(&mut buffer, 0).unwrap();
    }
    assert_eq!(is_cached, is_on_tmpfs(&path) && !posix.always_blocks.load(Ordering::Relaxed));
    file.read_exact_at(&mut buffer, 0).unwrap();
    assert_eq!(buffer, contents);
    let missing = posix.forget_cached(&dir.0.join("b"), &|| ());
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn direct_reads_return_what_the_file_has_and_short_ones_cache_nothing() {
    let dir = TempDir::new();
    let path = dir.0.join("a");
    let mut rng = Rng::new(1);
    // The last sector is not whole.
    let contents: Vec<u8> = (0..1_000_001).map(|_| rng.below(256) as u8).collect();
    fs::write(&path, &contents).unwrap();
    fs::File::open(&path).unwrap().sync_all().unwrap();
    let posix = PosixFs::new();
    let file = match posix.open_direct(&path) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            return eprintln!("{} has no direct reads", path.display());
        }
        opened => opened.unwrap(),
    };
    posix.forget_cached(&path, &|| ()).unwrap();
    for number in 0..300 {
        let offset = rng.below(contents.len() as u64 + 1) as usize;
        let len_max = if number % 10 == 0 { direct::READ_BYTES_MAX } else { 5_000 };
        let len = rng.below((len_max.min(contents.len() - offset) + 1) as u64) as usize;
        let mut buffer = vec![0; len];
        assert!(!file.try_read_exact_at(&mut buffer, offset as u64).unwrap());
        file.read_exact_at(&mut buffer, offset as u64).unwrap();
        assert!(buffer == contents[offset..offset + len], "{len} bytes at {offset}");
        let near_end = contents.len() as u64 - rng.below(10_000);
        let too_long = file.read_exact_at(&mut [0; 10_000], near_end);
        assert_eq!(too_long.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
    let through_cache = posix.open(&path).unwrap();
    if !is_on_tmpfs(&path) {
        assert!(!through_cache.try_read_exact_at(&mut [0; 100], 500_000).unwrap());
    }
    // Under memory pressure the page cache may lose what a long read has left there.
    let is_cached = (0..100).any(|_| {
        let mut whole = vec![0; contents.len()];
        file.read_exact_at(&mut whole, 0).unwrap();
        assert!(whole == contents);
        through_cache.try_read_exact_at(&mut [0; 100], 500_000).unwrap()
    });
    assert_eq!(is_cached, !posix.always_blocks.load(Ordering::Relaxed));
}

#[test]
fn a_refusal_of_nonblocking_reads_is_remembered() {
    let dir = TempDir::new();
    let path = dir.0.join("a");
    fs::write(&path, b"contents").unwrap();
    let posix = PosixFs::new();
    let file = posix.open(&path).unwrap();
    posix.always_blocks.store(true, Ordering::Relaxed);
    assert!(!file.try_read_exact_at(&mut [0; 8], 0).unwrap());
    for errno in [libc::ENOSYS, libc::EOPNOTSUPP, libc::EINVAL] {
        assert!(is_unsupported(&io::Error::from_raw_os_error(errno)), "{errno}");
    }
    for errno in [libc::EAGAIN, libc::EIO] {
        assert!(!is_unsupported(&io::Error::from_raw_os_error(errno)), "{errno}");
    }
}

#[test]
fn extending_by_zeros_keeps_the_contents() {
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
fn a_refused_lock_names_the_owner_in_the_lock_file() {
    let dir = TempDir::new();
    let path = dir.0.join("LOCK");
    fs::write(&path, b"4711\n").unwrap();
    let other = fs::File::open(&path).unwrap();
    other.try_lock().unwrap();
    let refused = PosixFs::new().lock(&path).err().unwrap();
    assert!(refused.to_string().ends_with("is locked by process 4711"), "{refused}");
    fs::write(&path, b"").unwrap();
    let refused = PosixFs::new().lock(&path).err().unwrap();
    let holder = format!("is locked by process {}", std::process::id());
    assert!(refused.to_string().ends_with(&holder), "{refused}");
}

#[test]
fn the_descriptor_limit_is_raised_as_far_as_wanted_and_never_lowered() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(500), ..limit }).unwrap();
    assert_eq!(raise_descriptor_limit(600), 600);
    assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: Some(600), ..limit });
    assert_eq!(raise_descriptor_limit(10), 600);
    let hard_limit = limit.maximum.unwrap_or(u64::MAX);
    assert_eq!(raise_descriptor_limit(u64::MAX), hard_limit);
    assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), hard_limit);
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
fn only_the_owner_may_read_new_files() {
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
fn a_replaced_locked_directory_is_not_synced() {
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
