//! The state of the disk and the operations that change it.
//!
//! Lock order: the disk, then one inode at a time.

use super::faults::{FaultOp, Faults};
use super::inode::{Edit, Inode, to_usize};
use super::journal::{Fate, Journal};
use super::tree::{Change, DirId, Node, Tree};
use crate::rng::Rng;
use kvant_base::lock::NamedMutex;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) type InodeCell = NamedMutex<Inode>;

/// The scope of a sync.
pub(super) enum SyncTarget {
    File(Arc<InodeCell>),
    Dir(DirId),
}

pub(super) struct Disk {
    /// The names that users see.
    pub(super) names: Tree<InodeCell>,
    /// The names that survive every crash, apart from durable changes still in `name_journal`.
    pub(super) durable_names: Tree<InodeCell>,
    /// Each entry is one atomic operation.
    pub(super) name_journal: Journal<Vec<Change<InodeCell>>>,
    /// Whether changes are recorded for crash images.
    pub(super) has_journal: bool,
    pub(super) capacity_bytes: Option<u64>,
    /// Total length of all named files.
    pub(super) used_bytes: u64,
    pub(super) faults: Faults,
    /// Bytes of files that cannot be read.
    pub(super) lost_bytes: Vec<(PathBuf, u64)>,
    /// Duration of each read.
    pub(super) read_delay: Duration,
    /// Duration of each sync.
    pub(super) sync_delay: Duration,
    pub(super) sync_point_count: u64,
    pub(super) crash_at_sync_point: Option<u64>,
    /// The sync at which power was lost. The disk no longer changes.
    pub(super) crashed_at: Option<SyncTarget>,
    /// Locked directories.
    pub(super) locked: Vec<DirId>,
    rng: Rng,
}

pub(super) fn new_inode(contents: Arc<Vec<u8>>) -> Arc<InodeCell> {
    Arc::new(NamedMutex::new("faulty_inode", Inode::new(contents)))
}

impl Disk {
    /// A disk with an empty root directory.
    pub(super) fn new(rng: Rng) -> Disk {
        Disk::with_names(Tree::new(), None, rng)
    }

    /// A disk on which `names` and their files are durable.
    pub(super) fn with_names(
        names: Tree<InodeCell>,
        capacity_bytes: Option<u64>,
        rng: Rng,
    ) -> Disk {
        let mut used_bytes = 0;
        for (_, inode) in names.files() {
            let mut inode = inode.lock();
            inode.link_count += 1;
            if inode.link_count == 1 {
                used_bytes += inode.len_bytes();
            }
        }
        Disk {
            durable_names: names.clone(),
            names,
            name_journal: Journal::new(),
            has_journal: true,
            capacity_bytes,
            used_bytes,
            faults: Faults::default(),
            lost_bytes: Vec::new(),
            read_delay: Duration::ZERO,
            sync_delay: Duration::ZERO,
            sync_point_count: 0,
            crash_at_sync_point: None,
            crashed_at: None,
            locked: Vec::new(),
            rng,
        }
    }

    /// Fails after a crash.
    pub(super) fn check_power(&self) -> io::Result<()> {
        match self.crashed_at {
            Some(_) => Err(io::Error::other("the machine has lost power")),
            None => Ok(()),
        }
    }

    /// Fails after a crash or if a fault is injected.
    pub(super) fn check(&mut self, op: FaultOp, paths: &[&Path]) -> io::Result<()> {
        self.check_power()?;
        self.faults.check(op, paths)
    }

    pub(super) fn available_bytes(&self) -> u64 {
        self.capacity_bytes
            .map_or(u64::MAX, |capacity_bytes| capacity_bytes.saturating_sub(self.used_bytes))
    }

    /// Performs one atomic change of names.
    pub(super) fn change_names(&mut self, changes: Vec<Change<InodeCell>>) {
        if changes.is_empty() {
            return;
        }
        for change in &changes {
            if let Some(Node::File(replaced)) = self.names.apply(change) {
                let mut replaced = replaced.lock();
                replaced.link_count -= 1;
                if replaced.link_count == 0 {
                    self.used_bytes -= replaced.len_bytes();
                }
            }
            if let Some(Node::File(named)) = &change.node {
                let mut named = named.lock();
                named.link_count += 1;
                if named.link_count == 1 {
                    self.used_bytes += named.len_bytes();
                }
            }
        }
        if self.has_journal {
            self.name_journal.push(changes, Fate::Pending);
        }
    }

    /// The file at `path`, created if missing.
    pub(super) fn file_or_new(&mut self, path: &Path) -> io::Result<Arc<InodeCell>> {
        match self.names.file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let inode = new_inode(Arc::default());
                let changes = self.names.plan_insert(path, Arc::clone(&inode))?;
                self.change_names(changes);
                Ok(inode)
            }
            found => found,
        }
    }

    /// Changes the contents of a file. The caller has checked for space.
    pub(super) fn edit(&mut self, inode: &InodeCell, edit: Edit, fate: Fate) -> io::Result<()> {
        let mut inode = inode.lock();
        let len_bytes_before = inode.len_bytes();
        if self.has_journal {
            inode.edit(edit, fate)?;
        } else {
            edit.apply(Arc::make_mut(&mut inode.live))?;
        }
        if inode.link_count > 0 {
            self.used_bytes = self.used_bytes - len_bytes_before + inode.len_bytes();
        }
        Ok(())
    }

    /// Writes as much as fits.
    pub(super) fn write(
        &mut self,
        inode: &InodeCell,
        bytes: &[u8],
        offset_bytes: u64,
    ) -> io::Result<()> {
        let end_bytes =
            offset_bytes.checked_add(bytes.len() as u64).ok_or(ErrorKind::FileTooLarge)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let missing_bytes = self.missing_bytes(inode, end_bytes);
        let fitting = &bytes[..bytes.len() - to_usize(missing_bytes)?.min(bytes.len())];
        if !fitting.is_empty() {
            self.edit(inode, Edit::Write { offset_bytes, bytes: fitting.to_vec() }, Fate::Pending)?;
        }
        if missing_bytes > 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Writes a part chosen by the seed, as a write with an injected failure does.
    pub(super) fn write_part(
        &mut self,
        inode: &InodeCell,
        bytes: &[u8],
        offset_bytes: u64,
    ) -> io::Result<()> {
        let len = self.rng.below(bytes.len() as u64 + 1) as usize;
        self.write(inode, &bytes[..len], offset_bytes)
    }

    /// Changes the length of a file completely or not at all.
    pub(super) fn resize(&mut self, inode: &InodeCell, edit: Edit) -> io::Result<()> {
        if let Edit::SetLen(len_bytes) | Edit::Extend(len_bytes) = edit
            && self.missing_bytes(inode, len_bytes) > 0
        {
            return Err(ErrorKind::StorageFull.into());
        }
        self.edit(inode, edit, Fate::Pending)
    }

    /// Space that is missing for the file to become `len_bytes` long.
    fn missing_bytes(&self, inode: &InodeCell, len_bytes: u64) -> u64 {
        let inode = inode.lock();
        match inode.link_count {
            0 => 0,
            _ => len_bytes.saturating_sub(inode.len_bytes()).saturating_sub(self.available_bytes()),
        }
    }

    /// Syncs, unless the crash is planned for this call or a failure of `op` is injected.
    pub(super) fn sync(&mut self, target: SyncTarget, op: FaultOp, path: &Path) -> io::Result<()> {
        self.check_power()?;
        self.sync_point_count += 1;
        if self.crash_at_sync_point == Some(self.sync_point_count) {
            self.crashed_at = Some(target);
            return self.check_power();
        }
        let outcome = self.faults.check(op, &[path]);
        let fate = if outcome.is_ok() { Fate::Durable } else { Fate::InDoubt };
        match target {
            SyncTarget::File(inode) => inode.lock().settle(fate),
            SyncTarget::Dir(dir) => self.settle_names(fate, |changes| touches(changes, dir)),
        }
        outcome
    }

    pub(super) fn sync_all(&mut self) {
        self.settle_names(Fate::Durable, |_| true);
        for (_, inode) in self.names.files() {
            inode.lock().settle(Fate::Durable);
        }
    }

    fn settle_names(&mut self, fate: Fate, covers: impl Fn(&Vec<Change<InodeCell>>) -> bool) {
        self.name_journal.settle(fate, covers);
        while let Some(changes) = self.name_journal.pop_durable() {
            for change in &changes {
                self.durable_names.apply(change);
            }
        }
    }
}

/// Whether an operation changes names in `dir`.
pub(super) fn touches(changes: &[Change<InodeCell>], dir: DirId) -> bool {
    changes.iter().any(|change| change.dir == dir)
}
