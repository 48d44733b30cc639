//! A simulated disk that fails on demand, fills up, slows down and loses power.
//!
//! The disk is in memory and tracks for every write and name whether it would survive a power loss.
//! [`FaultyFs::crash_image`] builds the file system that a restarted machine would find.
//!
//! Crash model ([`CrashStyle::Random`] draws an outcome from a seed):
//! 1. Synced data survives: contents and length after `sync_data` of the file, names after
//!    `sync_dir` of their directory. A file with synced contents but an unsynced name is lost; a
//!    name without synced contents refers to an empty or partial file. This includes names of
//!    directories: a new directory is durable once its *parent* is synced.
//! 2. Any unsynced writes to a file may survive, in any order, complete or torn: truncated at any
//!    byte, with missing 512-byte sectors, or with their length but without their bytes. Changes of
//!    length (`set_len`, `allocate`, the truncation by `create`) keep their position among the
//!    writes and are never torn.
//! 3. Any unsynced name changes may survive. Each is atomic: a rename leaves either the old or the
//!    new name. A rename across directories becomes durable with the sync of either directory, as
//!    on any journalling file system. Changes of the same name keep their order: a later one
//!    survives only with the earlier ones. A rename into a new directory survives only with that
//!    directory, because otherwise the file would have no name.
//! 4. Data covered by a failed sync stays in doubt: no later sync makes it durable, because the
//!    kernel marks pages clean that it failed to write. Later writes and changes are not affected.
//!
//! Used space is the sum of the lengths of all named files, including holes. A write that does not
//! fit fails after filling the disk. Removing a file's last name frees its space, even while the
//! file is open.
//!
//! On a slow disk each read or sync blocks its thread for the configured time. A sync covers
//! everything written before that time is over.
//!
//! Threads: any. One lock guards the disk, because its subject is the order of operations. No
//! thread holds the lock during a delay.

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
mod crash_style;
mod disk;
mod faults;
mod inode;
mod journal;
mod tree;

pub use crash_style::CrashStyle;
pub use faults::FaultOp;

/// The file system. Clones share the same disk.
#[derive(Clone)]
pub struct FaultyFs {
    disk: Arc<NamedMutex<Disk>>,
}

/// Whether power was lost before or after a sync took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMoment {
    /// The sync had no effect.
    BeforeSync,
    /// The sync took effect, but its caller did not learn of it.
    AfterSync,
}

impl FaultyFs {
    /// A file system with an empty root directory. The seed chooses how much of a write is done
    /// before an injected failure.
    pub fn new(seed: u64) -> FaultyFs {
        FaultyFs::from_disk(Disk::new(Rng::new(seed)))
    }

    /// A disk on which everything is durable at once, for tests without crashes. It has no crash
    /// images.
    pub fn in_memory() -> FaultyFs {
        let mut disk = Disk::new(Rng::new(0));
        disk.has_journal = false;
        FaultyFs::from_disk(disk)
    }

    fn from_disk(disk: Disk) -> FaultyFs {
        FaultyFs { disk: Arc::new(NamedMutex::new("faulty_fs", disk)) }
    }

    /// The disk after a restart if power were lost now: a new file system in which everything is
    /// durable, without locks, injected faults, delays and planned crash. This one stays usable.
    /// The same state, seed and style give the same image.
    pub fn crash_image(&self, seed: u64, style: CrashStyle) -> FaultyFs {
        let disk = self.disk.lock();
        FaultyFs::from_disk(crash::image(&disk, None, style, Rng::new(seed)))
    }

    /// Number of calls of `sync_data` and `sync_dir`, including failed ones.
    pub fn sync_point_count(&self) -> u64 {
        self.disk.lock().sync_point_count
    }

    /// Plans a power loss: the `n`th call (from 1) of `sync_data` or `sync_dir`, as counted by
    /// [`FaultyFs::sync_point_count`], and every operation after it fail. The state is frozen, and
    /// [`FaultyFs::take_crash_image`] makes any number of images of it.
    ///
    /// # Panics
    /// If sync point `n` has passed.
    pub fn crash_at_sync_point(&self, n: u64) {
        let mut disk = self.disk.lock();
        assert!(n > disk.sync_point_count, "sync point {n} has passed");
        disk.crash_at_sync_point = Some(n);
    }

    /// Whether the planned crash has happened.
    pub fn is_crashed(&self) -> bool {
        self.disk.lock().crashed_at.is_some()
    }

    /// An image of the disk after the planned crash; `None` if it has not happened.
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

    /// Makes the next `count` operations of kind `op` fail on paths that end with `path_suffix`; an
    /// empty suffix matches all. An open file has the path that it was opened by. A rename or link
    /// matches with either of its paths.
    pub fn fail_next(&self, op: FaultOp, path_suffix: &str, kind: ErrorKind, count: u64) {
        self.fail_after(0, op, path_suffix, kind, count);
    }

    /// As [`FaultyFs::fail_next`], but the first `skip_count` matching operations succeed.
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

    /// Makes a byte of a file unreadable, as a bad sector of a disk is, for readers by this path.
    pub fn lose_byte(&self, path: &Path, offset_bytes: u64) {
        self.disk.lock().lost_bytes.push((path.to_path_buf(), offset_bytes));
    }

    /// Removes all injected faults.
    pub fn clear_faults(&self) {
        self.disk.lock().faults.clear();
    }

    /// Number of injected failures so far.
    pub fn fault_count(&self) -> u64 {
        self.disk.lock().faults.injected_count()
    }

    /// Delays every read. With a nonzero delay [`crate::File::try_read_exact_at`] returns false.
    pub fn set_read_delay(&self, delay: Duration) {
        self.disk.lock().read_delay = delay;
    }

    /// Delays every `sync_data` and `sync_dir`.
    pub fn set_sync_delay(&self, delay: Duration) {
        self.disk.lock().sync_delay = delay;
    }

    /// Limits the total length of all files; `None` removes the limit.
    pub fn set_capacity_bytes(&self, capacity_bytes: Option<u64>) {
        self.disk.lock().capacity_bytes = capacity_bytes;
    }

    /// Total length of all named files.
    pub fn used_bytes(&self) -> u64 {
        self.disk.lock().used_bytes
    }

    /// Makes everything durable that is not in doubt, without counting a sync point. For the setup
    /// of tests.
    pub fn sync_all(&self) {
        self.disk.lock().sync_all();
    }

    /// Releases all locks, as the end of the processes that hold them does.
    pub fn release_locks(&self) {
        self.disk.lock().locked.clear();
    }

    /// Every file with its length, in path order. Also works after a crash.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let files = self.disk.lock().names.files();
        files.into_iter().map(|(path, inode)| (path, inode.lock().len_bytes())).collect()
    }

    /// The contents of a file as its readers see them. Ignores injected faults and also works after
    /// a crash.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inode = self.disk.lock().names.file(path)?;
        let contents = inode.lock().live.to_vec();
        Ok(contents)
    }

    /// Corrupts a byte durably: flips the bits that are set in `xor`.
    ///
    /// # Panics
    /// If `xor` is 0.
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
