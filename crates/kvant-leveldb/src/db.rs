//! The engine: opening and closing, reads, writes, ranges, the operator's commands.
//!
//! Threads: any. Reads go to LevelDB directly and may wait for the disk; writes go through
//! [`crate::writer`].

use crate::copy::{AFTER_ALL_KEYS, Loader};
use crate::directory;
use crate::ffi::{self, Batch, Database, Value};
use crate::health::{Fence, WriteHealth};
use crate::log_sync::LogSync;
use crate::options::{Options, SyncLevel};
use crate::range::Range;
use crate::space::{PROBE_BYTES, Space};
use crate::stats::{self, Stats};
use crate::status;
use crate::writer::{Done, Figures, Queue, Writer};
use arc_swap::ArcSwapOption;
use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::wait::WaitKind;
use kvant_base::{Consumer, Error, ErrorKind, MemoryBudget, Reservation, Result};
use kvant_env::{Env, Signal, TaskHandle};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the name of a checkpoint ends with while it is made.
const UNFINISHED: &str = ".unfinished";

/// What the process shares with a database.
#[derive(Clone)]
pub struct Resources {
    /// The memory budget, which other parts of the process share.
    pub memory: Arc<MemoryBudget>,
    /// Receives events as lines for people.
    pub log: Arc<dyn Log>,
}

/// A database of LevelDB. Dropping it closes it.
pub struct LevelDb {
    env: Env,
    dir: PathBuf,
    options: Options,
    resources: Resources,
    /// `None` when closed.
    db: Arc<ArcSwapOption<Database>>,
    fence: Arc<Fence>,
    space: Arc<Space>,
    log_sync: Arc<LogSync>,
    writer: Arc<Writer>,
    tasks: [Arc<dyn TaskHandle>; 2],
    /// Held while a checkpoint is made.
    checkpointing: NamedMutex<()>,
    /// Write buffers and cache.
    _memory: [Reservation; 2],
}

impl LevelDb {
    /// Opens the database in `dir`, or creates it where there is none.
    ///
    /// # Errors
    /// `Locked`, with the owner's process id; `Corruption`: LevelDB finds damage; `Invalid`: the
    /// directory belongs to another engine.
    pub fn open(env: Env, dir: &Path, options: Options, resources: Resources) -> Result<LevelDb> {
        let is_there = directory::prepare(&env, dir, false)?;
        LevelDb::start(env, dir, options, resources, !is_there)
    }

    /// As [`LevelDb::open`], after LevelDB's own repair: damaged records may be missing, and older
    /// or deleted ones may reappear.
    ///
    /// # Errors
    /// As [`LevelDb::open`], where the repair does not help.
    pub fn repair_and_open(
        env: Env,
        dir: &Path,
        options: Options,
        resources: Resources,
    ) -> Result<LevelDb> {
        directory::prepare(&env, dir, true)?;
        let lock = lock(dir)?;
        let repaired = Database::repair(dir, &options.tuning(false));
        // Before LevelDB takes it: to close another descriptor of the file ends the lock.
        drop(lock);
        repaired.map_err(|text| status::error(dir, &text))?;
        LevelDb::start(env, dir, options, resources, false)
    }

    fn start(
        env: Env,
        dir: &Path,
        options: Options,
        resources: Resources,
        creates: bool,
    ) -> Result<LevelDb> {
        // LevelDB knows what this process has open by name, and would open another name again.
        let dir = &env.fs.canonical(dir).map_err(|error| Error::io("look at", dir, error))?;
        let db = Database::open(dir, &options.tuning(creates))
            .map_err(|text| directory::name_owner(dir, status::error(dir, &text)))?;
        let (major, minor) = ffi::version();
        let version = format!("{major}.{minor}");
        let fields: [(&str, &dyn std::fmt::Display); 2] =
            [("version", &version), ("dir", &dir.display())];
        resources.log.event(Level::Info, "leveldb_opened", &fields);

        let db = Arc::new(ArcSwapOption::from_pointee(db));
        let fence = Arc::new(Fence::new(Arc::clone(&resources.log)));
        let buffer_bytes = options.write_buffer_bytes();
        let log = Arc::clone(&resources.log);
        let space = Arc::new(Space::new(env.clone(), dir.to_path_buf(), log, buffer_bytes));
        let interval = match options.sync {
            SyncLevel::Interval(interval) => interval,
            SyncLevel::Os | SyncLevel::Always => Duration::MAX,
        };
        let log_sync = LogSync::new(env.clone(), dir.to_path_buf(), Arc::clone(&fence), interval);
        let log_sync = Arc::new(log_sync);
        let writer = Arc::new(Writer {
            dir: dir.to_path_buf(),
            db: Arc::clone(&db),
            sync: options.sync,
            fence: Arc::clone(&fence),
            space: Arc::clone(&space),
            log_sync: Arc::clone(&log_sync),
            tasks: OnceLock::new(),
            queue: NamedMutex::new("leveldb_queue", Queue::default()),
            figures: Figures::default(),
        });
        let tasks = [env.spawner.spawn(writer.clone()), env.spawner.spawn(log_sync.clone())];
        writer.tasks.get_or_init(|| tasks.clone());
        let memory = &resources.memory;
        let reserved = [
            memory.reserve(Consumer::Memtables, 2 * buffer_bytes),
            memory.reserve(Consumer::BlockCache, options.cache_bytes()),
        ];
        let dir = dir.to_path_buf();
        Ok(LevelDb {
            env,
            dir,
            options,
            resources,
            db,
            fence,
            space,
            log_sync,
            writer,
            tasks,
            checkpointing: NamedMutex::new("leveldb_checkpointing", ()),
            _memory: reserved,
        })
    }

    fn database(&self) -> Result<Arc<Database>> {
        let closed = || Error::new(ErrorKind::Closed, "the database is closed");
        self.db.load_full().ok_or_else(closed)
    }

    /// The newest value of `key`. May wait for the disk.
    ///
    /// # Errors
    /// `Corruption`: the block with the key is damaged; others stay readable.
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let found = self.database()?.get(key);
        found.map_err(|text| status::error(&self.dir, &text))
    }

    /// Writes `batch` together with others. `done` learns the outcome when the sync level is
    /// reached, on any thread, or before this returns. `Stalled`: nothing was written; see
    /// [`LevelDb::on_writable`].
    pub fn submit(&self, batch: Batch, done: Done) {
        self.writer.submit(batch, done);
    }

    /// Calls `wake` once when a stalled write may succeed; at once if it may already.
    pub fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        self.writer.on_writable(wake);
    }

    /// Why a write would stall now.
    pub fn stall(&self) -> Option<&'static str> {
        self.writer.stall()
    }

    /// Records with `start <= key`, and `key < end` where an end is given, as they are now.
    ///
    /// # Errors
    /// The database is closed.
    pub fn range(&self, start: &[u8], end: Option<&[u8]>) -> Result<Range> {
        let snapshot = self.database()?.snapshot();
        Ok(Range::new(self.dir.clone(), snapshot, start, end, &self.resources.memory))
    }

    /// Whether writes succeed.
    pub fn write_health(&self) -> WriteHealth {
        match self.fence.cause() {
            Some(cause) => WriteHealth::Fenced(cause),
            None if self.space.is_full() => WriteHealth::NoSpace,
            None => WriteHealth::Good,
        }
    }

    /// Writes the memtable to a table, and waits for it.
    ///
    /// # Errors
    /// The flush failed: writes are refused from now on.
    pub fn flush(&self) -> Result<()> {
        self.compact_range(Some((AFTER_ALL_KEYS, AFTER_ALL_KEYS)))
    }

    /// Compacts everything, and waits for it.
    ///
    /// # Errors
    /// The compaction failed: writes are refused from now on.
    pub fn compact(&self) -> Result<()> {
        self.compact_range(None)
    }

    fn compact_range(&self, bounds: Option<(&[u8], &[u8])>) -> Result<()> {
        self.database()?.compact(bounds);
        // LevelDB reports a failure with the next write: write nothing, and see.
        let outcome = Arc::new((NamedMutex::new("leveldb_outcome", None), signal()));
        let sender = Arc::clone(&outcome);
        self.writer.submit(
            Batch::default(),
            Box::new(move |result| {
                *sender.0.lock() = Some(result);
                sender.1.notify_all();
            }),
        );
        let (result, written) = &*outcome;
        self.env.spawner.wait_until(written, None, &mut || result.lock().is_some());
        result.lock().take().unwrap_or(Ok(()))
    }

    /// Copies the records as they are now into a new database in `dir`, which must not exist. It is
    /// made beside it and renamed when it is complete. After an error nothing of it is left.
    ///
    /// # Errors
    /// `Invalid`: the directory exists, or a name of its path ends with `.unfinished`, as the
    /// leftovers of a crash do, which are removed; `NoSpace`: the copy would leave too little;
    /// others where a read or write fails.
    pub fn checkpoint(&self, dir: &Path) -> Result<()> {
        let fs = &*self.env.fs;
        if fs.exists(dir).map_err(|error| Error::io("look at", dir, error))? {
            return Err(Error::invalid("the directory of the checkpoint exists").with_file(dir));
        }
        if dir.iter().any(|name| name.as_encoded_bytes().ends_with(UNFINISHED.as_bytes())) {
            let message =
                format!("a name that ends with {UNFINISHED} is for unfinished checkpoints");
            return Err(Error::invalid(message).with_file(dir));
        }
        let _checkpointing = self.checkpointing.lock();
        let Some(name) = dir.file_name() else {
            return Err(Error::invalid("the path of a checkpoint ends with a name").with_file(dir));
        };
        let mut name = name.to_os_string();
        name.push(UNFINISHED);
        let unfinished = dir.with_file_name(name);
        // A crash left it.
        self.remove(&unfinished)?;
        let copied = self.copy(&unfinished).and_then(|()| {
            fs.rename(&unfinished, dir).map_err(|error| Error::io("rename", &unfinished, error))?;
            directory::sync_parent(fs, dir)
        });
        if copied.is_err()
            && let Err(error) = self.remove(&unfinished)
        {
            self.resources.log.event(Level::Warn, "checkpoint_not_removed", &[("error", &error)]);
        }
        copied
    }

    fn copy(&self, dir: &Path) -> Result<()> {
        let mut records = self.range(&[], None)?;
        let mut loader = Loader::create(&self.env, dir, &self.options)?;
        let mut unlooked_bytes = PROBE_BYTES;
        while let Some((key, value)) = records.next()? {
            if unlooked_bytes >= PROBE_BYTES {
                self.space.require_room_for_copy(dir)?;
                unlooked_bytes = 0;
            }
            loader.put(key, value)?;
            unlooked_bytes += (key.len() + value.len()) as u64;
        }
        loader.finish().map(|_count| ())
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        match self.env.fs.remove_dir_all(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| Error::io("remove", dir, error)),
        }
    }

    /// The statistics.
    ///
    /// # Errors
    /// The database is closed.
    pub fn stats(&self) -> Result<Stats> {
        let db = self.database()?;
        let text = db.property(c"leveldb.stats").unwrap_or_default();
        let memory = db.property(c"leveldb.approximate-memory-usage");
        let (major, minor) = ffi::version();
        let (log_sync_count, log_sync_us_total) = self.log_sync.figures();
        let figures = &self.writer.figures;
        Ok(Stats {
            version: format!("{major}.{minor}"),
            levels: stats::levels(&text),
            approximate_memory_bytes: memory.and_then(|text| text.parse().ok()).unwrap_or(0),
            operation_count: figures.operation_count.load(Ordering::Relaxed),
            group_count: figures.group_count.load(Ordering::Relaxed),
            user_bytes: figures.user_bytes.load(Ordering::Relaxed),
            queued_bytes: self.writer.queued_bytes(),
            log_sync_count,
            log_sync_us_total,
            disk_full: self.space.is_full(),
            fenced: self.fence.cause().map(|cause| cause.to_string()),
            text,
        })
    }

    /// Writes what is queued, makes acknowledged writes durable and releases the directory; a
    /// second call does nothing. Ranges that are still open hold the directory until they end.
    ///
    /// # Errors
    /// The last sync failed.
    pub fn close(&self) -> Result<()> {
        if !self.writer.close() {
            return Ok(());
        }
        let [writer, log_sync] = &self.tasks;
        writer.join();
        self.log_sync.close();
        log_sync.wake();
        log_sync.join();
        let synced = match self.fence.cause() {
            // Said to each write since; nothing is known of the logs.
            Some(_) => Ok(()),
            None => self.log_sync.sync_all(),
        };
        self.db.store(None);
        synced
    }
}

/// Takes LevelDB's own lock of the directory until the result is dropped: its repair takes none.
#[expect(clippy::disallowed_types, reason = "a lock needs a descriptor")]
fn lock(dir: &Path) -> Result<OwnedFd> {
    let path = dir.join(directory::LOCK);
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).open(&path);
    let file = OwnedFd::from(opened.map_err(|error| Error::io("open", &path, error))?);
    match ffi::lock(&file) {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let what = "the directory is in use by another process";
            let error = Error::new(ErrorKind::Locked, what).with_file(dir);
            Err(directory::name_owner(dir, error))
        }
        Err(error) => Err(Error::io("lock", &path, error)),
    }
}

fn signal() -> Signal {
    Signal::new(WaitKind::Io, "leveldb_compaction")
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            self.resources.log.event(Level::Error, "close_failed", &[("error", &error)]);
        }
    }
}
