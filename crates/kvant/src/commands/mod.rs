//! The commands, one file or directory each.

#[cfg(feature = "cassandra")]
mod cassandra;
pub(crate) mod copy;
pub(crate) mod db;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod lab;
#[cfg(feature = "leveldb")]
mod leveldb;
#[expect(clippy::disallowed_methods, reason = "a report shows the command line")]
pub(crate) mod load;
mod option;
pub(crate) mod profile;
mod reader;
pub(crate) mod serve;
mod signals;
