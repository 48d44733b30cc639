//! Google's LevelDB as a storage engine: the C++ library itself, in a directory that its own tools
//! open.
//!
//! - `ffi`: LevelDB's C interface behind safe types; all unsafe code of this crate.
//! - `options`, `status`, `stats`: settings, errors, figures.
//! - `directory`: which files a directory has, so that no other engine's are opened or removed.
//! - `health`, `space`: when writes are refused.
//! - `log_sync`, `writer`: sync levels and group commit.
//! - `range`, `copy`: reading a snapshot in pieces, and into another database.
//! - `db`: the engine.
//!
//! Keys and values are stored as they are, and the only files in the directory are LevelDB's.
//! `docs/leveldb.md` says what the engine can do and what it cannot.
//!
//! Threads: LevelDB has one thread of its own, which flushes and compacts. This crate adds one that
//! writes, because a write of LevelDB may sleep, and one that syncs logs.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

mod copy;
mod db;
mod directory;
#[expect(unsafe_code, reason = "LevelDB has a C interface only")]
mod ffi;
mod health;
mod log_sync;
mod options;
mod range;
mod space;
mod stats;
mod status;
mod writer;

pub use copy::Loader;
pub use db::{LevelDb, Resources};
pub use directory::is_database;
pub use ffi::{Batch, Value};
pub use health::WriteHealth;
pub use options::{Options, SyncLevel};
pub use range::Range;
pub use stats::{LevelStats, Stats};
pub use writer::Done;
