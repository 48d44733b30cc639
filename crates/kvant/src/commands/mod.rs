//! The commands, one file each. A command returns the exit code of the process.

pub(crate) mod db;
pub(crate) mod generate;
pub(crate) mod serve;
