//! Kvant's storage engine: a log-structured merge tree.
//!
//! Modules form a DAG, lowest first: `format`, `cursor` <- `batch`, `cache` <- `wal`, `memtable`,
//! `table` <- `version` <- `iter` <- `compaction`, `commit` <- `db` <- `tools`; all may use
//! `options`, `stats` and `events`. `docs/architecture.md` describes the path of a read and of a
//! write through them.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

mod batch;
mod cache;
mod commit;
mod compaction;
mod cursor;
mod db;
mod events;
mod format;
mod iter;
mod memtable;
mod options;
#[expect(missing_docs, reason = "the names of most fields are clear and have units")]
mod stats;
mod table;
pub mod tools;
mod version;
mod wal;

pub use batch::WriteBatch;
pub use commit::queue::Completion;
pub use db::{
    Db, Lookup, RangeIter, ReadTrace, Record, RecoveryProgress, Refused, Resources, Snapshot,
    WriteHealth,
};
pub use format::{FileNum, SeqNum};
pub use options::{Compression, Options, SyncLevel};
pub use stats::*;
