//! Opening: manifest, tables, then the log into memtables.
//!
//! Steps, in an order that a crash at any point leaves repeatable:
//! 1. take the directory's lock;
//! 2. read the manifest, open its tables, check that each is the one that the manifest describes;
//! 3. replay the log files that the manifest needs, oldest first, into memtables; a torn end is cut
//!    off and reported;
//! 4. start a new log file and a new manifest, whose first edit is the whole tree;
//! 5. remove what nothing refers to.
//!
//! Memtables are not flushed here, so that opening costs one read of the log: the flush task does
//! it behind. It does so also with one that is not full when its logs have become many, or restarts
//! that write little would pile them up.
//!
//! On a full disk steps 4 and 5 leave the new files out: the log is begun with the first write that
//! finds space, and the old manifest goes on. So a database opens for reading without a byte to
//! spare.
//!
//! A start that is refused removes what it has made.
//!
//! Readers see at once what was replayed. It is therefore synced first where the sync level
//! promises something: the process that wrote it may have ended before its own sync.

use super::Resources;
use super::checkpoint;
use super::core::{Core, Parts, VersionState};
use super::inventory::{Listed, list, open_table};
use super::replay::Replay;
use super::space::DiskSpace;
use super::view::{SuperVersion, Views};
use super::write::Writer;
use crate::commit::sync::{LogFile, LogSync};
use crate::events::EventSink;
use crate::format::{FileKind, FileNum, SeqNum, file_path};
use crate::options::{Options, SyncLevel};
use crate::stats::RecoveryStats;
use crate::table::{BlockCache, Table, TableContext, TableStats};
use crate::version::{
    self, KnownLogs, ManifestState, ManifestWriter, ObsoleteQueue, RecoveredManifest, TableFile,
    Version, VersionEdit,
};
use crate::wal::{PreviousWal, RecoveredWal, WalWriter};
use kvant_base::log::{Level, Log};
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Env;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where recovery is; shared with whoever shows it.
#[derive(Debug, Default)]
pub struct RecoveryProgress {
    pub(super) done_bytes: AtomicU64,
    pub(super) total_bytes: AtomicU64,
}

impl RecoveryProgress {
    /// Whole per cent of the log that have been replayed: 0 to 100.
    pub fn per_cent(&self) -> u64 {
        let total = self.total_bytes.load(Ordering::Relaxed);
        let done = self.done_bytes.load(Ordering::Relaxed).min(total);
        (done * 100).checked_div(total).unwrap_or(0)
    }
}

pub(crate) fn open(
    env: Env,
    dir: &Path,
    options: Options,
    resources: Resources,
) -> Result<Arc<Core>> {
    let problems = options.problems();
    if !problems.is_empty() {
        return Err(Error::invalid(problems.join("; ")));
    }
    let made = Made::new(&env, dir)?;
    let log = Arc::clone(&resources.log);
    // Held until nothing can fail any more.
    let mut owner = None;
    let opened = create_dir(&env, dir).and_then(|()| lock(&env, dir)).and_then(|lock| {
        owner = Some(lock);
        open_owned(env.clone(), dir, options, resources, &mut owner)
    });
    if opened.is_err() {
        made.undo(&env, dir, owner.is_some(), &*log);
    }
    opened
}

/// What a start makes before it may be refused.
struct Made {
    dir: bool,
    lock: bool,
}

impl Made {
    fn new(env: &Env, dir: &Path) -> Result<Made> {
        let is_missing = |path: &Path| {
            let exists = env.fs.exists(path).map_err(|e| Error::io("look at", path, e));
            exists.map(|exists| !exists)
        };
        Ok(Made {
            dir: is_missing(dir)?,
            lock: is_missing(&file_path(dir, FileKind::Lock, FileNum(0)))?,
        })
    }

    /// Removes it after a refusal. `is_owner`: the lock was taken, so no other process uses what
    /// was made.
    fn undo(self, env: &Env, dir: &Path, is_owner: bool, log: &dyn Log) {
        if !is_owner {
            return;
        }
        let lock = file_path(dir, FileKind::Lock, FileNum(0));
        let removed = match (self.lock, self.dir) {
            (_, true) => env.fs.remove_dir_all(dir),
            (true, false) => env.fs.remove_file(&lock),
            (false, false) => Ok(()),
        };
        if let Err(error) = removed {
            let error = Error::io("remove", &lock, error);
            log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
        }
    }
}

fn open_owned(
    env: Env,
    dir: &Path,
    options: Options,
    resources: Resources,
    owner: &mut Option<Box<dyn kvant_env::FileLock>>,
) -> Result<Arc<Core>> {
    let tag = tag::enter(Activity::Recovery);
    let started_ns = env.clock.monotonic_ns();
    let manifest = match version::recover(&*env.fs, dir)? {
        Some(manifest) => manifest,
        None => new_database(&env, dir, &*resources.log)?,
    };
    let files = list(&env, dir)?;
    if manifest.discarded_bytes > 0 {
        let fields: &[(&str, &dyn std::fmt::Display)] =
            &[("manifest", &manifest.num.0), ("discarded_bytes", &manifest.discarded_bytes)];
        resources.log.event(Level::Warn, "manifest_tail_discarded", fields);
    }

    let tables = Arc::new(TableContext {
        cache: BlockCache::new(Arc::clone(&resources.memory)),
        memory: Arc::clone(&resources.memory),
        metadata_share_bytes: options.memory_bytes / 4,
        stats: Arc::new(TableStats::default()),
    });
    let obsolete = ObsoleteQueue::new();
    tag.stage(Stage::Table);
    let version = Version::open(&manifest.state, |meta| {
        let table = open_table(&env, dir, meta, &tables)?;
        Ok(TableFile::new(meta.clone(), table, Arc::clone(&obsolete)))
    })?;

    tag.stage(Stage::Wal);
    let mut replay = Replay::new(&env, dir, &options, &resources, &manifest.state);
    let wals = replay.run(&files)?;
    tag.stage(Stage::Sync);
    let mut next_file_num = next_file_num(&files, &manifest);
    let mut new_num = || {
        next_file_num += 1;
        FileNum(next_file_num - 1)
    };

    let events = EventSink::new(Arc::clone(&env.clock), resources.events);
    let log_sync = LogSync::new(options.sync, Arc::clone(&env.clock), events.clone());
    let previous = give_to_sync(&env, dir, &wals, &manifest.state.logs, &log_sync, options.sync)?;
    let wal_num = new_num();
    let log = &*resources.log;
    let wal = unless_full(start_wal(&env, dir, log, wal_num, previous, &log_sync, options.sync))?;
    let last_seq = manifest.state.last_seq;
    // With the old manifest, the logs that it knows go on being needed.
    let mut oldest_wal = manifest.state.oldest_wal;
    let mut logs = manifest.state.logs.clone();
    let mut manifest_num = manifest.num;
    let last_wal = previous.map_or(oldest_wal, |previous| previous.file_num);
    let active_wal = replay.active_wal.unwrap_or(if wal.is_some() { wal_num } else { last_wal });
    let mut manifest_writer = None;
    if wal.is_some() {
        let num = new_num();
        let needed_wal = replay.sealed.first().map_or(active_wal, |sealed| sealed.first_wal);
        let known = log_sync.known_logs().into_iter();
        let needed_logs: KnownLogs = known.filter(|(num, _)| *num >= needed_wal).collect();
        let snapshot = VersionEdit {
            logs: needed_logs.clone().into_iter().collect(),
            ..version.snapshot_edit(FileNum(next_file_num), last_seq, needed_wal)
        };
        manifest_writer =
            unless_full(make_manifest(&env, dir, log, num, &snapshot)).inspect_err(|error| {
                remove_after(error, &env, log, &file_path(dir, FileKind::Wal, wal_num))
            })?;
        if manifest_writer.is_some() {
            (manifest_num, oldest_wal, logs) = (num, needed_wal, needed_logs);
        }
    }
    let manifest_writer = match manifest_writer {
        Some(writer) => writer,
        None => ManifestWriter::resume(&*env.fs, dir, manifest.num, manifest.end_bytes)?,
    };

    let us = (env.clock.monotonic_ns() - started_ns) / 1000;
    let recovery = RecoveryStats { us, ..replay.stats };
    log_done(&*resources.log, &recovery, &version);
    let Replay { next_seq, sealed, active, .. } = replay;
    let visible_seq = SeqNum(next_seq.0 - 1);
    let views = Views::new(SuperVersion {
        generation: 0,
        active: Arc::clone(active.memtable()),
        active_wal,
        sealed: sealed.into_iter().rev().map(Arc::new).collect(),
        version: Arc::new(version),
    });
    let space =
        DiskSpace::new(env.clone(), Arc::clone(&resources.log), dir, options.memtable_bytes);
    space.open();
    let owner = owner.take().expect("the lock was taken before");
    let core = Core::new(Parts {
        env,
        dir: dir.to_path_buf(),
        options,
        memory: resources.memory,
        log: resources.log,
        events,
        tables,
        obsolete,
        views,
        visible_seq,
        next_file_num: FileNum(next_file_num),
        log_sync,
        space,
        versions: VersionState {
            manifest: manifest_writer,
            last_seq,
            oldest_wal,
            logs,
            unreadable: HashSet::new(),
        },
        writer: Writer::new(wal, previous, active, next_seq.0),
        recovery,
        owner,
    });
    remove_orphans(&core, &files, manifest_num, oldest_wal, &wals);
    Ok(core)
}

/// Creates the directory where there is none, and makes its name durable. Parents that exist are
/// taken to be.
fn create_dir(env: &Env, dir: &Path) -> Result<()> {
    if env.fs.exists(dir).map_err(|e| Error::io("look at", dir, e))? {
        return Ok(());
    }
    env.fs.create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
    let parent = parent_of(dir);
    env.fs.sync_dir(parent).map_err(|e| Error::io("sync", parent, e))
}

/// The directory that holds the name of `path`.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn lock(env: &Env, dir: &Path) -> Result<Box<dyn kvant_env::FileLock>> {
    let path = file_path(dir, FileKind::Lock, FileNum(0));
    env.fs.lock(&path).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Locked, source.to_string()).with_file(dir)
        }
        _ => Error::io("lock", &path, source),
    })
}

/// A new database is a manifest of nothing: it comes before the first log, so that a log without a
/// manifest is always damage.
fn new_database(env: &Env, dir: &Path, log: &dyn Log) -> Result<RecoveredManifest> {
    let (num, state) = (FileNum(1), ManifestState::empty());
    let nothing = VersionEdit {
        next_file_num: Some(state.next_file_num),
        last_seq: Some(state.last_seq),
        oldest_wal: Some(state.oldest_wal),
        ..VersionEdit::default()
    };
    let manifest = make_manifest(env, dir, log, num, &nothing)?;
    Ok(RecoveredManifest { state, num, end_bytes: manifest.bytes(), discarded_bytes: 0 })
}

/// A manifest; when it cannot be made, its temporary file does not stay.
fn make_manifest(
    env: &Env,
    dir: &Path,
    log: &dyn Log,
    num: FileNum,
    snapshot: &VersionEdit,
) -> Result<ManifestWriter> {
    let temporary = file_path(dir, FileKind::Temporary, num);
    ManifestWriter::create(&*env.fs, dir, num, snapshot)
        .inspect_err(|error| remove_after(error, env, log, &temporary))
}

/// Removes what was made in vain, unless it is not known whether it was.
fn remove_after(error: &Error, env: &Env, log: &dyn Log, path: &Path) {
    if error.kind() != ErrorKind::OutcomeUnknown
        && let Err(error) = env.fs.remove_file(path)
    {
        log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
    }
}

/// What could be made; nothing when the disk is full.
fn unless_full<T>(made: Result<T>) -> Result<Option<T>> {
    match made {
        Err(error) if error.kind() == ErrorKind::NoSpace => Ok(None),
        made => made.map(Some),
    }
}

fn next_file_num(files: &[Listed], manifest: &RecoveredManifest) -> u64 {
    let seen = files.iter().map(|(_, num, _)| num.0 + 1).max().unwrap_or(1);
    seen.max(manifest.state.next_file_num.0).max(1)
}

/// Cuts torn ends off, makes the replayed logs durable unless the level promises nothing, and hands
/// them to the log sync. Returns the end of the history, for the next log's header to name.
fn give_to_sync(
    env: &Env,
    dir: &Path,
    wals: &[RecoveredWal],
    known: &KnownLogs,
    sync: &LogSync,
    level: SyncLevel,
) -> Result<Option<PreviousWal>> {
    let mut previous = None;
    for wal in wals.iter().filter(|wal| wal.end.good_bytes > 0) {
        let path = file_path(dir, FileKind::Wal, wal.file_num);
        let file = env.fs.open_writable(&path).map_err(|e| Error::io("open", &path, e))?;
        if wal.end.discarded_bytes > 0 {
            file.set_len(wal.end.good_bytes).map_err(|e| Error::io("cut", &path, e))?;
        }
        previous = Some(PreviousWal { file_num: wal.file_num, final_bytes: wal.end.good_bytes });
        let (num, written_bytes) = (wal.file_num, wal.end.good_bytes);
        let mut synced_bytes = known.get(&num).copied().unwrap_or(0);
        if level != SyncLevel::Os {
            file.sync_data().map_err(|e| Error::io("sync", &path, e))?;
            synced_bytes = written_bytes;
        }
        sync.add_file(LogFile { num, path, file, written_bytes, synced_bytes });
    }
    Ok(previous)
}

fn start_wal(
    env: &Env,
    dir: &Path,
    log: &dyn Log,
    num: FileNum,
    previous: Option<PreviousWal>,
    sync: &LogSync,
    level: SyncLevel,
) -> Result<WalWriter> {
    let path = file_path(dir, FileKind::Wal, num);
    let file = env.fs.create(&path).map_err(|e| Error::io("create", &path, e))?;
    let started = env
        .fs
        .sync_dir(dir)
        .map_err(|e| Error::io("sync", dir, e))
        .and_then(|()| WalWriter::start(Arc::clone(&file), &path, num, previous))
        .and_then(|wal| {
            // The manifest will record this. With `os` the logs before it may not be synced, and a
            // log with synced bytes claims that they are.
            let mut synced_bytes = 0;
            if level != SyncLevel::Os {
                file.sync_data().map_err(|e| Error::io("sync", &path, e))?;
                synced_bytes = wal.end_bytes();
            }
            Ok((wal, synced_bytes))
        });
    let (wal, synced_bytes) = started.inspect_err(|error| remove_after(error, env, log, &path))?;
    sync.add_file(LogFile { num, path, file, written_bytes: wal.end_bytes(), synced_bytes });
    Ok(wal)
}

/// Removes what nothing refers to: files being made when the process ended, inputs of compactions,
/// logs that were flushed.
fn remove_orphans(
    core: &Core,
    files: &[Listed],
    manifest: FileNum,
    oldest_wal: FileNum,
    wals: &[RecoveredWal],
) {
    if let Err(error) = checkpoint::remove_unfinished(core) {
        core.log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
    }
    let view = core.views.load();
    let live: HashSet<FileNum> = view.version.all_tables().map(|file| file.meta.num).collect();
    let known = core.versions.lock().logs.clone();
    for (kind, num, entry) in files {
        let needed = match kind {
            FileKind::Table => live.contains(num),
            FileKind::Wal => {
                let is_replayed =
                    wals.iter().any(|wal| wal.file_num == *num && wal.end.good_bytes > 0);
                // What the manifest names must exist even when it holds nothing.
                *num == oldest_wal || *num > oldest_wal && (is_replayed || known.contains_key(num))
            }
            FileKind::Manifest => *num == manifest,
            FileKind::Temporary => false,
            FileKind::Reserve | FileKind::Lock => true,
        };
        if !needed {
            core.remove_file(&core.dir.join(&entry.name));
        }
    }
}

fn log_done(log: &dyn Log, stats: &RecoveryStats, version: &Version<Table>) {
    log.event(
        Level::Info,
        "recovered",
        &[
            ("us", &stats.us),
            ("wal_bytes", &stats.wal_bytes),
            ("wal_records", &stats.wal_record_count),
            ("discarded_bytes", &stats.discarded_bytes),
            ("tables", &version.all_tables().count()),
        ],
    );
}
