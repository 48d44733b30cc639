//! A full disk: puts are refused, deletes and background work proceed, and all heals when space
//! returns.
//!
//! The file `RESERVE` holds space for the time when there is no other. It is used up bit by bit,
//! and filled again when there is room:
//! - one part is for the log records of deletes, which use the other part last;
//! - the other lets a flush or a compaction begin, which frees more than it takes, and is filled
//!   first. Where that is not enough for anything, they may also take a third of the first part.
//!
//! Puts are refused as soon as less is available than the next flush and the next step of
//! compaction need, so that a database that fills its disk alone never takes the room to work from
//! itself. They are refused until the reserve is whole and there is room to spare. Writes probe for
//! that, at most once per [`PROBE_INTERVAL_NS`]: nothing polls an idle database.
//!
//! Invariants:
//! 1. flushes and compactions leave two thirds of the part for deletes alone, and the reserve does
//!    not grow into room that they have been lent;
//! 2. while puts are refused for space, no write waits for a flush or a compaction.

use crate::context::Context;
use crate::format::{FileKind, FileNum, file_path};
use crate::memtable::Memtable;
use kvant_base::lock::NamedMutex;
use kvant_base::log::Level;
use kvant_base::{Error, Result};
use kvant_env::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const PROBE_INTERVAL_NS: u64 = 200_000_000;
/// Interval at which a database that refuses puts seals its memtable early: deletes free space only
/// in tables.
const EARLY_SEAL_INTERVAL_NS: u64 = 1_000_000_000;

/// Largest part of the reserve for the log records of deletes. Two thirds of it are for nothing
/// else, as `docs/durability.md` promises: 100,000 records of one key of 64 bytes each take at most
/// 10.2 MB.
const DELETES_BYTES_MAX: u64 = 18 << 20;
/// Largest part of the reserve for flushes and compactions.
const WORK_BYTES_MAX: u64 = 6 << 20;
/// The unit in which file systems allocate space.
const BLOCK_BYTES: u64 = 4096;
/// Room for a flush or compaction besides its tables: edits of the manifest, the header of a log.
const EXTRA_BYTES: u64 = 4 * BLOCK_BYTES;

pub(crate) struct DiskSpace {
    context: Arc<Context>,
    reserve_path: PathBuf,
    /// The reserve when it is whole.
    whole: Reserve,
    /// Puts are refused.
    full: AtomicBool,
    /// The active memtable should be flushed although it is not full.
    early_seal_wanted: AtomicBool,
    /// How many [`LentRoom`]s there are.
    lent_count: AtomicU32,
    state: NamedMutex<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Reserve {
    /// For deletes alone.
    deletes_bytes: u64,
    /// For flushes and compactions.
    work_bytes: u64,
}

impl Reserve {
    fn bytes(self) -> u64 {
        self.deletes_bytes + self.work_bytes
    }

    /// The parts of a reserve of `bytes`, `whole` when it is full.
    fn of(bytes: u64, whole: Reserve) -> Reserve {
        let work_bytes = bytes.min(whole.work_bytes);
        Reserve { deletes_bytes: (bytes - work_bytes).min(whole.deletes_bytes), work_bytes }
    }
}

struct State {
    file: Option<Arc<dyn File>>,
    left: Reserve,
    /// Whether the log says that it is in use: once until space has returned.
    is_use_logged: bool,
    probed_ns: u64,
    sealed_early_ns: u64,
}

/// Room that a flush or compaction uses; the reserve does not grow into it.
pub(crate) struct LentRoom<'a>(&'a AtomicU32);

impl<'a> LentRoom<'a> {
    fn new(count: &'a AtomicU32) -> LentRoom<'a> {
        count.fetch_add(1, Ordering::AcqRel);
        LentRoom(count)
    }
}

impl Drop for LentRoom<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl DiskSpace {
    /// Takes over the reserve of the last owner, and fills it. A database without room for that
    /// starts as full.
    pub(crate) fn open(context: &Arc<Context>) -> DiskSpace {
        // A memtable has a chunk more than its size when it is sealed, and its table more than its
        // data.
        let memtable_bytes = context.options.memtable_bytes;
        let whole = Reserve {
            deletes_bytes: (memtable_bytes.saturating_mul(9) / 2).min(DELETES_BYTES_MAX),
            work_bytes: memtable_bytes.saturating_mul(3).div_ceil(2).min(WORK_BYTES_MAX),
        };
        let now_ns = context.env.clock.monotonic_ns();
        let state = State {
            file: None,
            left: Reserve::of(0, whole),
            is_use_logged: false,
            probed_ns: now_ns,
            sealed_early_ns: now_ns,
        };
        let space = DiskSpace {
            reserve_path: file_path(&context.dir, FileKind::Reserve, FileNum(0)),
            context: Arc::clone(context),
            whole,
            full: AtomicBool::new(false),
            early_seal_wanted: AtomicBool::new(false),
            lent_count: AtomicU32::new(0),
            state: NamedMutex::new("disk_space", state),
        };
        let mut state = space.state.lock();
        if let Err(error) = space.take_over(&mut state) {
            space.context.log.event(Level::Warn, "disk_reserve_not_opened", &[("error", &error)]);
        }
        space.grow(&mut state);
        let is_whole = state.left == space.whole;
        drop(state);
        if !is_whole {
            space.note_full();
        }
        space
    }

    fn take_over(&self, state: &mut State) -> std::io::Result<()> {
        if !self.context.env.fs.exists(&self.reserve_path)? {
            return Ok(());
        }
        let file = self.context.env.fs.open_writable(&self.reserve_path)?;
        let bytes = file.len_bytes()?;
        state.left = Reserve::of(bytes, self.whole);
        if bytes > self.whole.bytes() {
            file.set_len(self.whole.bytes())?;
        }
        state.file = Some(file);
        Ok(())
    }

    /// Whether puts are refused now.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The device has no space for puts. True if it had until now.
    pub(crate) fn note_full(&self) -> bool {
        let is_new = !self.full.swap(true, Ordering::AcqRel);
        if is_new {
            self.context.log.event(
                Level::Error,
                "disk_full",
                &[("dir", &self.context.dir.display())],
            );
        }
        is_new
    }

    /// Free bytes of the device; `None` when it does not say.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        self.context.env.fs.available_bytes(&self.context.dir).ok()
    }

    /// Room for a flush or compaction; more in distress, when that is too little for any of them.
    pub(crate) fn room_bytes(&self, in_distress: bool) -> u64 {
        let Some(available_bytes) = self.available_bytes() else {
            return u64::MAX;
        };
        let left = self.state.lock().left;
        let from_deletes = if in_distress { self.lendable_of_deletes(left) } else { 0 };
        let from_reserve = left.work_bytes + from_deletes;
        available_bytes.saturating_add(from_reserve).saturating_sub(EXTRA_BYTES)
    }

    /// Lends a flush or compaction `bytes`, from the reserve where nothing else is left, for as
    /// long as the result lives; `None` when there is not as much.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<Option<LentRoom<'_>>> {
        let mut state = self.state.lock();
        let lent = LentRoom::new(&self.lent_count);
        let Some(available_bytes) = self.available_bytes() else {
            return Ok(Some(lent));
        };
        let missing_bytes = bytes.saturating_add(EXTRA_BYTES).saturating_sub(available_bytes);
        if missing_bytes == 0 {
            return Ok(Some(lent));
        }
        let taken_bytes = missing_bytes.next_multiple_of(BLOCK_BYTES);
        let from_work = taken_bytes.min(state.left.work_bytes);
        let from_deletes = taken_bytes - from_work;
        if from_deletes > self.lendable_of_deletes(state.left) {
            return Ok((bytes == 0).then_some(lent));
        }
        self.shrink(&mut state, from_deletes, from_work).map(|()| Some(lent))
    }

    /// What flushes and compactions may take from the part for deletes.
    fn lendable_of_deletes(&self, left: Reserve) -> u64 {
        left.deletes_bytes.saturating_sub(self.whole.deletes_bytes / 3 * 2)
    }

    /// Gives deletes `bytes` of the reserve; false when nothing of it is left.
    pub(crate) fn take_for_deletes(&self, bytes: u64) -> Result<bool> {
        let mut state = self.state.lock();
        if state.left.bytes() == 0 {
            return Ok(false);
        }
        let taken_bytes = bytes.max(1).next_multiple_of(BLOCK_BYTES);
        let from_deletes = taken_bytes.min(state.left.deletes_bytes);
        let from_work = (taken_bytes - from_deletes).min(state.left.work_bytes);
        self.shrink(&mut state, from_deletes, from_work).map(|()| true)
    }

    /// Called before deletes grow a log from `from_bytes` to `to_bytes`: while room is lent, the
    /// log's blocks come out of the reserve instead of that room.
    pub(crate) fn spare_lent_room(&self, from_bytes: u64, to_bytes: u64) -> Result<()> {
        let block_count = to_bytes.div_ceil(BLOCK_BYTES) - from_bytes.div_ceil(BLOCK_BYTES);
        if block_count > 0 && self.is_full() && self.lent_count.load(Ordering::Acquire) > 0 {
            self.take_for_deletes(block_count * BLOCK_BYTES)?;
        }
        Ok(())
    }

    fn shrink(&self, state: &mut State, from_deletes: u64, from_work: u64) -> Result<()> {
        if !std::mem::replace(&mut state.is_use_logged, true) {
            self.context.log.event(
                Level::Warn,
                "disk_reserve_in_use",
                &[("bytes", &state.left.bytes())],
            );
        }
        let left = Reserve {
            deletes_bytes: state.left.deletes_bytes - from_deletes,
            work_bytes: state.left.work_bytes - from_work,
        };
        if let Some(file) = &state.file {
            file.set_len(left.bytes())
                .map_err(|source| Error::io("cut", &self.reserve_path, source))?;
        }
        state.left = left;
        if left.bytes() == 0 {
            self.context.log.event(Level::Error, "disk_reserve_spent", &[]);
        }
        Ok(())
    }

    /// Fills the reserve, or as much of it as there is space for.
    pub(crate) fn restore_reserve(&self) {
        self.grow(&mut self.state.lock());
    }

    fn grow(&self, state: &mut State) {
        if self.lent_count.load(Ordering::Acquire) > 0 {
            return;
        }
        let missing_bytes = self.whole.bytes() - state.left.bytes();
        if missing_bytes == 0 {
            return;
        }
        let added_bytes = missing_bytes.min(self.available_bytes().unwrap_or(missing_bytes));
        // A part of a block could not be taken out again.
        let added_bytes = if added_bytes == missing_bytes {
            missing_bytes
        } else {
            added_bytes / BLOCK_BYTES * BLOCK_BYTES
        };
        if added_bytes == 0 {
            return;
        }
        let file = match &state.file {
            Some(file) => Ok(Arc::clone(file)),
            None => self.context.env.fs.create(&self.reserve_path),
        };
        let bytes = state.left.bytes() + added_bytes;
        let grown = file.and_then(|file| {
            state.file = Some(Arc::clone(&file));
            file.allocate(bytes)
        });
        match grown {
            Ok(()) => {
                let left = state.left;
                let missing_work = self.whole.work_bytes - left.work_bytes;
                let for_work = missing_work.min(added_bytes);
                state.left = Reserve {
                    deletes_bytes: left.deletes_bytes + added_bytes - for_work,
                    work_bytes: left.work_bytes + for_work,
                };
            }
            Err(error) => {
                // Expected on a disk that is known to be full.
                if !self.is_full() {
                    self.context.log.event(
                        Level::Warn,
                        "disk_reserve_not_made",
                        &[("error", &error)],
                    );
                }
            }
        }
    }

    /// Whether it is time to probe for returned space.
    pub(crate) fn probe_is_due(&self) -> bool {
        let mut state = self.state.lock();
        let now_ns = self.context.env.clock.monotonic_ns();
        if now_ns < state.probed_ns + PROBE_INTERVAL_NS {
            return false;
        }
        state.probed_ns = now_ns;
        if now_ns >= state.sealed_early_ns + EARLY_SEAL_INTERVAL_NS {
            state.sealed_early_ns = now_ns;
            self.early_seal_wanted.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Whether the active memtable should be sealed now, for what its flush may free. True once per
    /// interval.
    pub(crate) fn take_early_seal(&self) -> bool {
        self.is_full() && self.early_seal_wanted.swap(false, Ordering::Relaxed)
    }

    /// Accepts puts again if the reserve is whole and more than `working_bytes` are available.
    pub(crate) fn heal(&self, working_bytes: u64) -> bool {
        let mut state = self.state.lock();
        self.grow(&mut state);
        // A margin, so that it lasts longer than one write.
        let wanted_bytes = working_bytes.saturating_add(self.whole.bytes() / 4);
        let healed = state.left == self.whole
            && self.available_bytes().is_some_and(|bytes| bytes >= wanted_bytes);
        if healed {
            state.is_use_logged = false;
            self.full.store(false, Ordering::Release);
            self.context.log.event(Level::Info, "disk_space_returned", &[]);
        }
        healed
    }

    /// Size at which a compaction ends its tables: smaller when there is less room, so that the
    /// next compaction needs less.
    pub(crate) fn output_table_bytes(&self) -> u64 {
        let table_bytes = self.context.options.table_bytes;
        let room_bytes = self.available_bytes().unwrap_or(u64::MAX);
        (room_bytes / 16).clamp(table_bytes / 16, table_bytes)
    }
}

/// Bytes of the table that a memtable becomes, at most.
pub(crate) fn flush_bytes(memtable: &Memtable) -> u64 {
    /// Trailer, lengths, filter and index.
    const ENTRY_BYTES: u64 = 16;
    let data_bytes = memtable.data_bytes();
    data_bytes + data_bytes / 64 + memtable.entry_count() * ENTRY_BYTES + 2 * BLOCK_BYTES
}
