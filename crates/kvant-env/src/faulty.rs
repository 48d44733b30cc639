//! A file system that fails, fills up and loses power: for tests of what the engine promises about
//! all three.
//!
//! It is a disk in memory that knows, of every write and of every name, whether it would survive a
//! loss of power now. From any state [`FaultyFs::crash_image`] makes the file system that a
//! restarted machine would find.
//!
//! What survives ([`CrashStyle::Random`] draws it from a seed):
//! 1. What was synced survives: contents and length by `sync_data` of the file, names by `sync_dir`
//!    of their directory. A file whose contents are synced but whose name is not is lost; a name
//!    without synced contents leads to an empty or partial file. That goes for the names of
//!    directories too: a new directory is durable once its *parent* is synced.
//! 2. Of the writes to a file that are not synced any may survive, in any order, whole or torn: cut
//!    at any byte, or with some of their 512-byte sectors missing, or with their length but without
//!    their bytes. Changes of length (`set_len`, `allocate`, the cut of `create`) keep their place
//!    among the writes and are never torn.
//! 3. Of the changes of names that are not synced any may survive. Each is atomic: a rename leaves
//!    either the old name or the new one, also across directories, where the sync of either
//!    directory makes it durable, as on any journalling file system. Changes of one name keep their
//!    order: a later one survives only together with the earlier ones. A rename into a directory
//!    that is itself new survives only together with that directory, lest the file had no name at
//!    all.
//! 4. What a failed sync covered stays in doubt for good: no later sync makes it durable, as the
//!    kernel takes pages that it could not write for clean. Later writes and changes are not
//!    affected.
//!
//! A full disk counts the lengths of files that have a name, holes included. A write that does not
//! fit is cut where space ends, and fails. The last name of a file gives its space back, even when
//! the file is still open.
//!
//! A slow disk: each read or sync takes as long as was set, in the thread that asked for it. A sync
//! covers what was written until its wait is over.
//!
//! Threads: any; one lock over everything, since order is what this file system is about. Nobody
//! holds it while waiting for a slow disk: others go on.

use crate::rng::Rng;
use disk::Disk;
use faults::FaultRule;
use inode::Edit;
use journal::Fate;
use kvant_base::lock::NamedMutex;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

mod backend;
mod crash;
mod disk;
mod faults;
mod inode;
mod journal;

pub use faults::FaultOp;

/// The file system. Clones are the same disk.
#[derive(Clone)]
pub struct FaultyFs {
    disk: Arc<NamedMutex<Disk>>,
}

/// What a crash does to what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashStyle {
    /// All of it is lost.
    DropUnsynced,
    /// All of it survives, as after the end of the process alone.
    KeepAll,
    /// Each piece is dropped, kept, reordered or torn, as the seed has it.
    Random,
}

/// When at a sync point power was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMoment {
    /// Nothing of the sync has taken effect.
    BeforeSync,
    /// All of it has, but its caller never learned.
    AfterSync,
}

impl FaultyFs {
    /// A file system that holds an empty root directory. The seed decides how much of a write is
    /// done before it fails on cue.
    pub fn new(seed: u64) -> FaultyFs {
        FaultyFs::from_disk(Disk::new(Rng::new(seed)))
    }

    fn from_disk(disk: Disk) -> FaultyFs {
        FaultyFs { disk: Arc::new(NamedMutex::new("faulty_fs", disk)) }
    }

    /// What a machine that lost power now would find after its restart: a new file system in which
    /// everything is durable, without locks, cues, delays and a planned crash. This one goes on.
    /// The same state, seed and style give the same image.
    pub fn crash_image(&self, seed: u64, style: CrashStyle) -> FaultyFs {
        let disk = self.disk.lock();
        FaultyFs::from_disk(crash::image(&disk, None, style, Rng::new(seed)))
    }

    /// How often `sync_data` and `sync_dir` were called, whether they failed or not.
    pub fn sync_point_count(&self) -> u64 {
        self.disk.lock().sync_point_count
    }

    /// Plans a loss of power: the call of `sync_data` or `sync_dir` that
    /// [`FaultyFs::sync_point_count`] counts as number `n` (the first is 1) fails, and so does
    /// every operation from then on. The state it found stays as it is:
    /// [`FaultyFs::take_crash_image`] makes as many images of it as a test wants.
    ///
    /// # Panics
    /// If sync point `n` has passed.
    pub fn crash_at_sync_point(&self, n: u64) {
        let mut disk = self.disk.lock();
        assert!(n > disk.sync_point_count, "sync point {n} has passed");
        disk.crash_at_sync_point = Some(n);
    }

    /// Whether the sync point of the planned crash was reached.
    pub fn is_crashed(&self) -> bool {
        self.disk.lock().crashed_at.is_some()
    }

    /// What is found after the planned crash; `None` if its sync point was not reached.
    pub fn take_crash_image(
        &self,
        moment: CrashMoment,
        seed: u64,
        style: CrashStyle,
    ) -> Option<FaultyFs> {
        let disk = self.disk.lock();
        let target = disk.crashed_at.as_ref()?;
        let completed = match moment {
            CrashMoment::BeforeSync => None,
            CrashMoment::AfterSync => Some(target),
        };
        Some(FaultyFs::from_disk(crash::image(&disk, completed, style, Rng::new(seed))))
    }

    /// Makes the next `count` operations of a kind fail on paths that end with `path_suffix` (`""`:
    /// on all). Operations on an open file go by the path that it was opened with; a rename or link
    /// by both of its paths.
    pub fn fail_next(&self, op: FaultOp, path_suffix: &str, kind: ErrorKind, count: u64) {
        self.fail_after(0, op, path_suffix, kind, count);
    }

    /// As [`FaultyFs::fail_next`], after `skip_count` such operations have passed.
    pub fn fail_after(
        &self,
        skip_count: u64,
        op: FaultOp,
        path_suffix: &str,
        kind: ErrorKind,
        count: u64,
    ) {
        let rule = FaultRule { op, path_suffix: path_suffix.to_owned(), kind, skip_count, count };
        self.disk.lock().faults.add(rule);
    }

    /// Forgets all cues.
    pub fn clear_faults(&self) {
        self.disk.lock().faults.clear();
    }

    /// How many operations have failed on cue.
    pub fn fault_count(&self) -> u64 {
        self.disk.lock().faults.injected_count()
    }

    /// Makes every read take this long (zero: none); [`crate::File::try_read_exact_at`] then never
    /// fills a buffer.
    pub fn set_read_delay(&self, delay: Duration) {
        self.disk.lock().read_delay = delay;
    }

    /// Makes every `sync_data` and `sync_dir` take this long (zero: none).
    pub fn set_sync_delay(&self, delay: Duration) {
        self.disk.lock().sync_delay = delay;
    }

    /// Limits the sum of the lengths of all files; `None` lifts the limit.
    pub fn set_capacity_bytes(&self, capacity_bytes: Option<u64>) {
        self.disk.lock().capacity_bytes = capacity_bytes;
    }

    /// Sum of the lengths of all files.
    pub fn used_bytes(&self) -> u64 {
        self.disk.lock().used_bytes
    }

    /// Makes everything durable that is not in doubt, without a sync point: the starting state of a
    /// test.
    pub fn sync_all(&self) {
        self.disk.lock().sync_all();
    }

    /// Gives up all locks, as the end of the processes that hold them does.
    pub fn release_locks(&self) {
        self.disk.lock().locked.clear();
    }

    /// Every file with its length, in path order. Works after a crash too.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let files = self.disk.lock().names.files();
        files.into_iter().map(|(path, inode)| (path, inode.lock().len_bytes())).collect()
    }

    /// The contents of a file as its readers see them. Needs no cue to succeed and works after a
    /// crash.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inode = self.disk.lock().names.file(path)?;
        let contents = inode.lock().live.to_vec();
        Ok(contents)
    }

    /// Corrupts a byte, durably: what `xor` has set is flipped.
    ///
    /// # Panics
    /// If `xor` is 0, which corrupts nothing.
    pub fn flip_byte(&self, path: &Path, offset_bytes: u64, xor: u8) -> io::Result<()> {
        assert_ne!(xor, 0, "flips no bit");
        let mut disk = self.disk.lock();
        let inode = disk.names.file(path)?;
        let old =
            usize::try_from(offset_bytes).ok().and_then(|at| inode.lock().live.get(at).copied());
        let bytes = vec![old.ok_or(ErrorKind::UnexpectedEof)? ^ xor];
        disk.edit(&inode, Edit::Write { offset_bytes, bytes }, Fate::Durable)
    }
}

#[cfg(test)]
mod tests;
