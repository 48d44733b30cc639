//! Injected failures.

use std::io::{self, ErrorKind};
use std::path::Path;

/// The operation to fail. An injected failure has no effect on the disk, except that a write does a
/// part of its work and a sync leaves the data it covered in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOp {
    /// `Fs::create`.
    Create,
    /// `Fs::open` and `Fs::open_writable`.
    Open,
    /// `File::read_exact_at` and `File::try_read_exact_at`.
    Read,
    /// `File::write_all_at`.
    Write,
    /// `File::sync_data`.
    SyncData,
    /// `File::set_len`.
    SetLen,
    /// `File::allocate`.
    Allocate,
    /// `Fs::rename`.
    Rename,
    /// `Fs::hard_link`.
    HardLink,
    /// `Fs::remove_file`.
    RemoveFile,
    /// `Fs::remove_dir`.
    RemoveDir,
    /// `Fs::remove_dir_all`.
    RemoveDirAll,
    /// `Fs::create_dir_all`.
    CreateDirAll,
    /// `Fs::list`.
    List,
    /// `Fs::sync_dir`.
    SyncDir,
    /// `Fs::lock`.
    Lock,
}

/// Which operations fail, and how.
pub(super) struct FaultRule {
    pub(super) op: FaultOp,
    pub(super) path_suffix: String,
    pub(super) kind: ErrorKind,
    /// Matching operations that still succeed.
    pub(super) skip_count: u64,
    /// Matching operations that fail after these.
    pub(super) count: u64,
}

impl FaultRule {
    fn matches(&self, op: FaultOp, paths: &[&Path]) -> bool {
        let ends_with_suffix = |path: &&Path| path.to_string_lossy().ends_with(&self.path_suffix);
        self.op == op && self.count > 0 && paths.iter().any(ends_with_suffix)
    }
}

/// The injected failures of a file system.
#[derive(Default)]
pub(super) struct Faults {
    rules: Vec<FaultRule>,
    injected_count: u64,
}

impl Faults {
    pub(super) fn add(&mut self, rule: FaultRule) {
        self.rules.push(rule);
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(super) fn injected_count(&self) -> u64 {
        self.injected_count
    }

    /// Fails if the first matching rule says so. Other rules do not count the operation.
    pub(super) fn check(&mut self, op: FaultOp, paths: &[&Path]) -> io::Result<()> {
        let Some(rule) = self.rules.iter_mut().find(|rule| rule.matches(op, paths)) else {
            return Ok(());
        };
        if rule.skip_count > 0 {
            rule.skip_count -= 1;
            return Ok(());
        }
        rule.count -= 1;
        self.injected_count += 1;
        Err(io::Error::new(rule.kind, format!("injected failure of {op:?}")))
    }
}
