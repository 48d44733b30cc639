//! Kvant's storage engine: a log-structured merge tree.
//!
//! Modules form a DAG, lower ones first:
//! `format` <- `wal`, `memtable`, `table`, `cache` <- `version` <- `compaction`, `iter`, `commit` <- `db`, `options`, `events`,
//! `stats`, `checkpoint`. `docs/architecture.md` draws the way of a read and of a write through them.
#![allow(dead_code, unused_imports, missing_docs, clippy::unimplemented)]

mod batch;
mod cache;
mod commit;
mod compaction;
mod db;
mod format;
mod iter;
mod memtable;
mod options;
mod stats;
mod table;
pub mod tools;
mod version;
mod wal;

pub use batch::WriteBatch;
pub use commit::queue::Completion;
pub use db::{Db, RangeIter, Record, RecoveryProgress, Refusable, Resources, Snapshot};
pub use format::{FileNum, SeqNum};
pub use options::{Compression, Options, SyncLevel};
pub use stats::*;
