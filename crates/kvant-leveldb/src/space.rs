//! A full disk: puts are refused while LevelDB still has room to flush and compact.
//!
//! LevelDB does not survive a write that finds no space: it refuses all later writes. So puts are
//! refused as soon as less is available than its background work may need at once, and accepted
//! again when there is more. Another program that fills the disk at once can still take that room.
//!
//! Threads: any.

use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes after which a writer, or a copy, looks at the device again,
pub(crate) const PROBE_BYTES: u64 = 1 << 20;
/// and how often puts do while they are refused.
const PROBE_INTERVAL_NS: u64 = 200_000_000;
/// What the largest compaction below level 0 writes before it removes its inputs: LevelDB ends the
/// inputs of a compaction at 25 tables of 2 MiB.
const COMPACTION_BYTES: u64 = 52 << 20;
/// Write buffers that become tables at once: those of level 0, at most 12 before LevelDB stops
/// writes, and the two in memory.
const BUFFERS_IN_FLIGHT: u64 = 14;

pub(crate) struct Space {
    env: Env,
    dir: PathBuf,
    log: Arc<dyn Log>,
    /// Puts need as much.
    room_bytes: u64,
    is_full: AtomicBool,
    /// Written since the last look.
    written_bytes: AtomicU64,
    looked_ns: NamedMutex<u64>,
}

impl Space {
    pub(crate) fn new(env: Env, dir: PathBuf, log: Arc<dyn Log>, write_buffer_bytes: u64) -> Space {
        let space = Space {
            room_bytes: BUFFERS_IN_FLIGHT * write_buffer_bytes + COMPACTION_BYTES,
            is_full: AtomicBool::new(false),
            written_bytes: AtomicU64::new(0),
            looked_ns: NamedMutex::new("leveldb_space", env.clock.monotonic_ns()),
            env,
            dir,
            log,
        };
        space.look();
        space
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Whether a put is refused now. While puts are, some of them look whether space has returned.
    pub(crate) fn refuses_puts(&self) -> bool {
        if !self.is_full() {
            return false;
        }
        let now_ns = self.env.clock.monotonic_ns();
        let mut looked_ns = self.looked_ns.lock();
        if now_ns >= *looked_ns + PROBE_INTERVAL_NS {
            *looked_ns = now_ns;
            drop(looked_ns);
            self.look();
        }
        self.is_full()
    }

    /// Fails if a copy of the database in `dir` would leave less than the room that puts need: once
    /// for this database, and once for the flushes and compactions of the copy.
    pub(crate) fn require_room_for_copy(&self, dir: &Path) -> Result<()> {
        let available_bytes = self.env.fs.available_bytes(dir).unwrap_or(u64::MAX);
        let needed_bytes = 2 * self.room_bytes;
        if available_bytes >= needed_bytes {
            return Ok(());
        }
        let what = format!(
            "a copy leaves {needed_bytes} bytes to LevelDB, and {available_bytes} are available"
        );
        Err(Error::new(ErrorKind::NoSpace, what).with_file(dir))
    }

    /// Bytes went to the log.
    pub(crate) fn note_written(&self, bytes: u64) {
        if self.written_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= PROBE_BYTES {
            self.look();
        }
    }

    fn look(&self) {
        self.written_bytes.store(0, Ordering::Relaxed);
        // A device that does not say is taken for large enough.
        let available_bytes = self.env.fs.available_bytes(&self.dir).unwrap_or(u64::MAX);
        // A margin, so that puts are not accepted and refused by turns.
        let margin_bytes = if self.is_full() { self.room_bytes / 8 } else { 0 };
        let is_full = available_bytes < self.room_bytes + margin_bytes;
        if self.is_full.swap(is_full, Ordering::Relaxed) == is_full {
            return;
        }
        let (level, name) = match is_full {
            true => (Level::Error, "disk_full"),
            false => (Level::Info, "disk_space_returned"),
        };
        let fields: [(&str, &dyn std::fmt::Display); 3] = [
            ("dir", &self.dir.display()),
            ("available_bytes", &available_bytes),
            ("needed_bytes", &self.room_bytes),
        ];
        self.log.event(level, name, &fields);
    }
}
