//! Appends that fail after a part of their work.

use super::*;
use kvant_env::testing::FaultOp;
use kvant_env::{DirEntry, File, FileLock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The operations that fail; each flag stays set until it is cleared.
#[derive(Default)]
struct Cues {
    /// Writes store all their bytes and then fail.
    write: AtomicBool,
    sync: AtomicBool,
    set_len: AtomicBool,
    rename: AtomicBool,
    sync_dir: AtomicBool,
}

impl Cues {
    fn check(cue: &AtomicBool) -> io::Result<()> {
        if cue.load(Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[derive(Clone)]
struct FailingFs {
    inner: FaultyFs,
    cues: Arc<Cues>,
}

struct FailingFile {
    inner: Arc<dyn File>,
    cues: Arc<Cues>,
}

impl File for FailingFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        self.inner.read_exact_at(buffer, offset_bytes)
    }
    fn try_read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<bool> {
        self.inner.try_read_exact_at(buffer, offset_bytes)
    }
    fn write_all_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        self.inner.write_all_at(bytes, offset_bytes)?;
        Cues::check(&self.cues.write)
    }
    fn sync_data(&self) -> io::Result<()> {
        Cues::check(&self.cues.sync)?;
        self.inner.sync_data()
    }
    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        Cues::check(&self.cues.set_len)?;
        self.inner.set_len(len_bytes)
    }
    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        self.inner.allocate(len_bytes)
    }
    fn len_bytes(&self) -> io::Result<u64> {
        self.inner.len_bytes()
    }
}

impl Fs for FailingFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.create(path)?;
        Ok(Arc::new(FailingFile { inner, cues: Arc::clone(&self.cues) }))
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.inner.open(path)
    }
    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.inner.open_writable(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Cues::check(&self.cues.rename)?;
        self.inner.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir_all(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.hard_link(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.inner.list(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Cues::check(&self.cues.sync_dir)?;
        self.inner.sync_dir(dir)
    }
    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        self.inner.available_bytes(path)
    }
    fn canonical(&self, path: &Path) -> io::Result<std::path::PathBuf> {
        self.inner.canonical(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        self.inner.lock(path)
    }
}

fn failing_fs() -> (FailingFs, Arc<Cues>) {
    let cues = Arc::new(Cues::default());
    (FailingFs { inner: new_fs(), cues: Arc::clone(&cues) }, cues)
}

fn recovered(fs: &dyn Fs) -> Vec<u64> {
    table_nums(&recover(fs, Path::new(DIR)).unwrap().unwrap(), 0)
}

#[test]
fn a_failed_write_is_rolled_back_and_the_next_append_succeeds() {
    let (fs, cues) = failing_fs();
    let mut writer =
        ManifestWriter::create(&fs, Path::new(DIR), FileNum(7), &snapshot(vec![])).unwrap();
    writer.append(&adding(0, table(1, "a", "b"))).unwrap();
    let bytes = writer.bytes();

    cues.write.store(true, Relaxed);
    let error = writer.append(&adding(0, table(2, "a", "b"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!((writer.bytes(), recovered(&fs)), (bytes, vec![1]));

    cues.write.store(false, Relaxed);
    writer.append(&adding(0, table(3, "a", "b"))).unwrap();
    assert_eq!(recovered(&fs), [3, 1]);
}

#[test]
fn a_record_of_unknown_outcome_fences_the_writer() {
    for (write, sync, set_len) in [(false, true, false), (true, true, false), (true, false, true)] {
        let (fs, cues) = failing_fs();
        let mut writer =
            ManifestWriter::create(&fs, Path::new(DIR), FileNum(7), &snapshot(vec![])).unwrap();
        cues.write.store(write, Relaxed);
        cues.sync.store(sync, Relaxed);
        cues.set_len.store(set_len, Relaxed);
        let error = writer.append(&adding(0, table(1, "a", "b"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        for cue in [&cues.write, &cues.sync, &cues.set_len] {
            cue.store(false, Relaxed);
        }
        let later = writer.append(&adding(0, table(2, "a", "b"))).unwrap_err();
        assert_eq!((later.kind(), later.message()), (ErrorKind::Fenced, error.message()));
    }
}

#[test]
fn a_failed_creation_leaves_the_older_manifest_current() {
    let (fs, cues) = failing_fs();
    let dir = Path::new(DIR);
    ManifestWriter::create(&fs, dir, FileNum(7), &snapshot(vec![(0, table(1, "a", "b"))])).unwrap();
    let cases = [
        (&cues.write, ErrorKind::NoSpace),
        (&cues.sync, ErrorKind::OutcomeUnknown),
        (&cues.rename, ErrorKind::OutcomeUnknown),
        (&cues.sync_dir, ErrorKind::OutcomeUnknown),
    ];
    for (cue, expected) in cases {
        cue.store(true, Relaxed);
        let error =
            ManifestWriter::create(&fs, dir, FileNum(8), &snapshot(vec![(0, table(1, "a", "b"))]))
                .err();
        assert_eq!(error.expect("the cue fails it").kind(), expected);
        cue.store(false, Relaxed);
        assert_eq!(recovered(&fs), [1]);
    }
}

/// On a file system that copies on writes, after a failed fsync.
#[test]
fn a_manifest_that_cannot_be_written_again_is_doubtful() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
        for op in [FaultOp::Write, FaultOp::SetLen] {
            let (fs, dir) = (new_fs(), Path::new(DIR));
            let writer = ManifestWriter::create(&fs, dir, FileNum(7), &snapshot(vec![])).unwrap();
            let resume = || ManifestWriter::resume(&fs, dir, FileNum(7), writer.bytes()).unwrap();
            assert!(!resume().is_doubtful());
            fs.fail_next(op, "", kind, 1);
            assert!(resume().is_doubtful());
        }
    }
}

#[test]
fn a_manifest_beside_an_older_one_is_doubtful() {
    let (fs, dir) = (new_fs(), Path::new(DIR));
    ManifestWriter::create(&fs, dir, FileNum(7), &snapshot(vec![])).unwrap();
    let writer = ManifestWriter::create(&fs, dir, FileNum(8), &snapshot(vec![])).unwrap();
    let resume = || ManifestWriter::resume(&fs, dir, FileNum(8), writer.bytes()).unwrap();
    assert!(resume().is_doubtful());
    remove_older(&fs, dir, FileNum(8)).unwrap();
    assert!(!resume().is_doubtful());
}
