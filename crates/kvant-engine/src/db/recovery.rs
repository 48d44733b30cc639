//! Opening: manifest, tables, then the log into memtables.
//!
//! Steps, in an order that can be repeated after a crash at any point:
//! 1. lock the directory;
//! 2. read the manifest, open its tables, check that each is the one that the manifest describes;
//! 3. replay the log files that the manifest needs, oldest first, into memtables; a torn end is cut
//!    off and reported;
//! 4. start a new log file and a new manifest, whose first edit is the whole tree;
//! 5. remove unreferenced files.
//!
//! Memtables are not flushed here, so that opening costs one read of the log. The flush task does
//! it later; it also flushes one that is not full when its logs have become many, or restarts that
//! write little would accumulate them.
//!
//! On a full disk steps 4 and 5 leave the new files out: the first write that finds space begins
//! the log, and the old manifest stays in use. So a database opens for reading without a byte to
//! spare. If that manifest may be in memory only, step 5 is left to a later start.
//!
//! A refused start removes what it has created.
//!
//! Readers see replayed writes at once. The logs are therefore synced first where the sync level
//! promises something: the process that wrote them may have ended before its own sync, or after one
//! that failed. So what is not known to be synced is written again before.

use super::checkpoint;
use super::core::Core;
use super::directory::{Created, check_direct_reads, create_dir, lock};
use super::inventory::open_table;
use super::replay::Replay;
use crate::commit::admission::Admission;
use crate::commit::log::{LogEnv, LogWriter};
use crate::commit::next_log::map_first_log;
use crate::commit::pipeline::Pipeline;
use crate::commit::sync::{LogFile, LogSync};
use crate::context::Context;
use crate::context::resources::Resources;
use crate::format::{FileKind, FileNum, SeqNum, file_path};
use crate::maintenance::Maintenance;
use crate::options::{Options, SyncLevel};
use crate::stats::RecoveryStats;
use crate::table::{Table, TableContext};
use crate::tree::view::{SuperVersion, Views, full_share};
use crate::tree::{Tree, VersionState};
use crate::version::{
    self, KnownLogs, Listed, ManifestState, ManifestWriter, ObsoleteQueue, RecoveredManifest,
    TableFile, Version, VersionEdit, list_files,
};
use crate::wal::{PreviousWal, RecoveredWal, WalWriter};
use kvant_base::lock::NamedMutex;
use kvant_base::log::Level;
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Env;
use kvant_env::fs::create_dir_durably;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn open(env: Env, dir: &Path, options: Options, resources: &Resources) -> Result<Core> {
    let problems = options.problems();
    if !problems.is_empty() {
        return Err(Error::invalid(problems.join("; ")));
    }
    let created = Created::new(&env, dir)?;
    // Held until nothing can fail any more.
    let mut dir_lock = None;
    let opened = create_dir(&env, dir).and_then(|()| lock(&env, dir)).and_then(|lock| {
        dir_lock = Some(lock);
        if options.direct_reads {
            check_direct_reads(&env, dir)?;
        }
        open_locked(Context::new(env.clone(), dir, options, resources), resources)
    });
    match &opened {
        Ok(core) => core.context.keep_dir_lock(dir_lock),
        Err(_) => created.undo(&env, dir, dir_lock.is_some(), &*resources.log),
    }
    opened
}

fn open_locked(context: Context, resources: &Resources) -> Result<Core> {
    let tag = tag::enter(Activity::Recovery);
    let context = Arc::new(context);
    let Context { env, dir, options, memory, log, .. } = &*context;
    let started_ns = env.clock.monotonic_ns();
    let manifest = match version::recover(&*env.fs, dir)? {
        Some(manifest) => manifest,
        None => new_database(&context)?,
    };
    if manifest.discarded_bytes > 0 {
        let fields: &[(&str, &dyn std::fmt::Display)] =
            &[("manifest", &manifest.num.0), ("discarded_bytes", &manifest.discarded_bytes)];
        log.event(Level::Warn, "manifest_tail_discarded", fields);
    }
    let files = list_files(&*env.fs, dir)?;
    context.set_next_file_num(next_file_num(&files, &manifest));

    let (share_bytes, is_direct) = (options.memory_bytes / 4, options.direct_reads);
    let tables = TableContext::new(&env.clock, memory, share_bytes, is_direct);
    let obsolete = ObsoleteQueue::new();
    tag.stage(Stage::Table);
    let version = Version::open(&manifest.state, |meta| {
        let table = open_table(env, dir, meta, &tables)?;
        Ok(TableFile::new(meta.clone(), table, Arc::clone(&obsolete)))
    })?;

    tag.stage(Stage::Wal);
    let mut replay = Replay::new(&context, &resources.progress, &manifest.state);
    let wals = replay.run(&files)?;
    tag.stage(Stage::Sync);
    let (clock, log) = (Arc::clone(&env.clock), Arc::clone(&context.log));
    let sync = Arc::new(LogSync::new(options.sync, clock, context.events.clone(), log));
    let (previous, is_durable) = hand_to_sync(&context, &wals, &manifest.state.logs, &sync)?;
    let wal = unless_full(start_wal(&context, previous, is_durable, &sync))?;
    let new_wal = wal.as_ref().map(|wal| wal.as_previous().file_num);
    if new_wal.is_some() {
        replay.seal_if_kept_long(&wals);
    }
    let last_wal = previous.map_or(manifest.state.oldest_wal, |previous| previous.file_num);
    let active_wal = replay.active_wal.or(new_wal).unwrap_or(last_wal);
    let oldest_wal = replay.sealed.first().map_or(active_wal, |sealed| sealed.first_wal);
    let (manifest_num, versions) =
        begin_versions(&context, &manifest, &version, &sync, new_wal.map(|_| oldest_wal))
            .inspect_err(|error| {
                if let Some(num) = new_wal {
                    remove_after(error, &context, &file_path(dir, FileKind::Wal, num));
                }
            })?;

    let us = (env.clock.monotonic_ns() - started_ns) / 1000;
    let Replay { next_seq, sealed, active, stats, .. } = replay;
    let recovery = RecoveryStats { us, ..stats };
    log_recovered(&context, &recovery, &version);
    let views = Views::new(SuperVersion {
        generation: 0,
        active: Arc::clone(active.memtable()),
        active_wal,
        sealed: sealed.into_iter().rev().map(Arc::new).collect(),
        version: Arc::new(version),
    });
    let visible_seq = SeqNum(next_seq.0 - 1);
    let tree = Tree::new(Arc::clone(&context), tables, obsolete, views, visible_seq, versions);
    let tree = Arc::new(tree);
    let admission = Arc::new(Admission::new(&context, &tree, &sync));
    let log_env = LogEnv::new(&context, &tree, &admission, &sync, last_wal);
    let is_empty = active.memtable().is_empty();
    let empty_share = is_empty.then(|| full_share(active.memtable(), options));
    let log_writer = LogWriter { wal, previous, active, empty_share };
    let log = Arc::new(Pipeline::new(log_env, sync, log_writer, next_seq));
    let maintenance = Arc::new(Maintenance::new(&context, &tree, &admission, &log));
    remove_orphans(&tree, &files, manifest_num, &wals);
    let checkpointing = NamedMutex::new("checkpoint", ());
    Ok(Core { context, tree, admission, log, maintenance, recovery, checkpointing })
}

/// A new database is an empty manifest: it comes before the first log, so that a log without a
/// manifest is always damage.
fn new_database(context: &Context) -> Result<RecoveredManifest> {
    // A start that a crash ended may have left the name of an existing directory in doubt.
    create_dir_durably(&*context.env.fs, &context.dir)?;
    let (num, state) = (FileNum(1), ManifestState::empty());
    let empty = VersionEdit {
        next_file_num: Some(state.next_file_num),
        last_seq: Some(state.last_seq),
        oldest_wal: Some(state.oldest_wal),
        ..VersionEdit::default()
    };
    let manifest = create_manifest(context, num, &empty).inspect_err(|error| {
        if error.kind() == ErrorKind::OutcomeUnknown {
            // Its name may be in memory only, and nothing needs it yet.
            context.remove_file(&file_path(&context.dir, FileKind::Manifest, num));
        }
    })?;
    Ok(RecoveredManifest { state, num, end_bytes: manifest.bytes(), discarded_bytes: 0 })
}

fn next_file_num(files: &[Listed], manifest: &RecoveredManifest) -> u64 {
    let seen = files.iter().map(|(_, num, _)| num.0 + 1).max().unwrap_or(1);
    seen.max(manifest.state.next_file_num.0).max(1)
}

/// Cuts torn and unused ends off, makes the replayed logs durable unless the level promises
/// nothing, and hands them to the log sync. Returns the end of the history, which the header of the
/// next log names, and whether all of it is durable.
fn hand_to_sync(
    context: &Context,
    wals: &[RecoveredWal],
    known: &KnownLogs,
    sync: &LogSync,
) -> Result<(Option<PreviousWal>, bool)> {
    let mut previous = None;
    let promises = context.options.sync != SyncLevel::Os;
    let mut is_durable = promises;
    for wal in wals.iter().filter(|wal| wal.end.good_bytes > 0) {
        let (num, written_bytes) = (wal.file_num, wal.end.good_bytes);
        let path = file_path(&context.dir, FileKind::Wal, num);
        let file = context.env.fs.open_writable(&path).map_err(|e| Error::io("open", &path, e))?;
        if wal.end.discarded_bytes + wal.end.unused_bytes > 0 {
            // An end that stays is ignored by later starts, too: the next log continues before it.
            unless_full(file.set_len(written_bytes).map_err(|e| Error::io("cut", &path, e)))?;
        }
        previous = Some(PreviousWal { file_num: num, final_bytes: written_bytes });
        let mut synced_bytes = known.get(&num).copied().unwrap_or(0);
        if promises {
            let unsynced = wal.synced_bytes..written_bytes;
            let again = file.write_again(unsynced).map_err(|e| Error::io("write", &path, e));
            // A file system that copies on writes may have no space for that.
            is_durable &= unless_full(again)?.is_some();
            file.sync_data().map_err(|e| Error::io("sync", &path, e))?;
        }
        if is_durable {
            synced_bytes = written_bytes;
        }
        let doubtful_bytes = written_bytes;
        sync.add_file(LogFile { num, path, file, written_bytes, synced_bytes, doubtful_bytes });
    }
    Ok((previous, is_durable))
}

fn start_wal(
    context: &Context,
    previous: Option<PreviousWal>,
    is_durable: bool,
    sync: &LogSync,
) -> Result<WalWriter> {
    let Context { env, dir, .. } = context;
    let num = context.new_file_num();
    let path = file_path(dir, FileKind::Wal, num);
    let file = env.fs.create(&path).map_err(|e| Error::io("create", &path, e))?;
    // Not `NoSpace`: after a failed sync the state is unknown, and nothing may go on.
    let unsynced = |path: &Path, e| Error::io("sync", path, e).with_kind(ErrorKind::Io);
    let start = || {
        env.fs.sync_dir(dir).map_err(|e| unsynced(dir, e))?;
        let mapped = map_first_log(context, &*file);
        let mut wal = WalWriter::start(Arc::clone(&file), &path, num, previous, 0)?;
        wal.map(mapped);
        // The manifest will record the synced bytes, and a log with some claims that those before
        // it are synced.
        if !is_durable {
            return Ok((wal, 0));
        }
        file.sync_data().map_err(|e| unsynced(&path, e))?;
        let synced_bytes = wal.end_bytes();
        Ok((wal, synced_bytes))
    };
    let (wal, synced_bytes) = start().inspect_err(|error| remove_after(error, context, &path))?;
    let written_bytes = wal.end_bytes();
    sync.add_file(LogFile { num, path, file, written_bytes, synced_bytes, doubtful_bytes: 0 });
    Ok(wal)
}

/// Begins a new manifest where `oldest_wal`, the oldest log it needs, is given and there is space.
/// Otherwise the old manifest stays in use, and the logs that it knows stay needed.
fn begin_versions(
    context: &Context,
    old: &RecoveredManifest,
    version: &Version<Table>,
    sync: &LogSync,
    oldest_wal: Option<FileNum>,
) -> Result<(FileNum, VersionState)> {
    let last_seq = old.state.last_seq;
    let unreadable = HashSet::new();
    if let Some(oldest_wal) = oldest_wal {
        let num = context.new_file_num();
        let known = sync.known_logs().into_iter();
        let logs: KnownLogs = known.filter(|(num, _)| *num >= oldest_wal).collect();
        let snapshot = VersionEdit {
            logs: logs.clone().into_iter().collect(),
            ..version.snapshot_edit(context.next_file_num(), last_seq, oldest_wal)
        };
        if let Some(manifest) = unless_full(create_manifest(context, num, &snapshot))? {
            return Ok((num, VersionState { manifest, last_seq, oldest_wal, logs, unreadable }));
        }
    }
    let fs = &*context.env.fs;
    let manifest = ManifestWriter::resume(fs, &context.dir, old.num, old.end_bytes)?;
    let (oldest_wal, logs) = (old.state.oldest_wal, old.state.logs.clone());
    Ok((old.num, VersionState { manifest, last_seq, oldest_wal, logs, unreadable }))
}

/// Creates a manifest. After a failure its temporary file is removed.
fn create_manifest(
    context: &Context,
    num: FileNum,
    snapshot: &VersionEdit,
) -> Result<ManifestWriter> {
    let temporary = file_path(&context.dir, FileKind::Temporary, num);
    ManifestWriter::create(&*context.env.fs, &context.dir, num, snapshot)
        .inspect_err(|error| remove_after(error, context, &temporary))
}

/// Removes a file after an error, unless the error leaves open whether the file is needed.
fn remove_after(error: &Error, context: &Context, path: &Path) {
    if error.kind() != ErrorKind::OutcomeUnknown {
        context.remove_file(path);
    }
}

/// `None` when the disk is full.
fn unless_full<T>(made: Result<T>) -> Result<Option<T>> {
    match made {
        Err(error) if error.kind() == ErrorKind::NoSpace => Ok(None),
        made => made.map(Some),
    }
}

/// Removes unreferenced files: unfinished ones, inputs of compactions, logs that were flushed.
/// Where a power loss may bring an earlier manifest back, all stay: it may need them.
fn remove_orphans(tree: &Tree, files: &[Listed], manifest: FileNum, wals: &[RecoveredWal]) {
    let context = &*tree.context;
    if let Err(error) = checkpoint::remove_unfinished(context) {
        context.log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
    }
    let view = tree.views.load();
    let live: HashSet<FileNum> = view.version.all_tables().map(|file| file.meta.num).collect();
    let versions = tree.versions.lock();
    if versions.manifest.is_doubtful() {
        return;
    }
    let (known, oldest_wal) = (versions.logs.clone(), versions.oldest_wal);
    drop(versions);
    for (kind, num, entry) in files {
        let needed = match kind {
            FileKind::Table => live.contains(num),
            FileKind::Wal => {
                let is_replayed =
                    wals.iter().any(|wal| wal.file_num == *num && wal.end.good_bytes > 0);
                // A log that the manifest names must exist even when it is empty.
                *num == oldest_wal || *num > oldest_wal && (is_replayed || known.contains_key(num))
            }
            FileKind::Manifest => *num == manifest,
            FileKind::Temporary => false,
            FileKind::Reserve | FileKind::Lock => true,
        };
        if !needed {
            context.remove_file(&context.dir.join(&entry.name));
        }
    }
}

fn log_recovered(context: &Context, stats: &RecoveryStats, version: &Version<Table>) {
    context.log.event(
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
