//! The permissions of new files and directories.

/// Mode of new files.
pub(super) const FILE_MODE: u32 = 0o600;
/// Mode of new directories.
pub(super) const DIR_MODE: u32 = 0o700;
