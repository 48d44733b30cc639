//! Kvant's storage engine: a log-structured merge tree.
//!
//! `docs/architecture.md` describes the path of a read and of a write through the modules.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

mod batch;
mod cache;
mod commit;
mod compaction;
mod context;
mod cursor;
mod db;
mod events;
mod format;
mod iter;
mod maintenance;
mod memtable;
mod options;
#[expect(unsafe_code, reason = "an instruction of the processor")]
mod prefetch;
#[expect(missing_docs, reason = "the names of most fields are clear and have units")]
mod stats;
mod table;
pub mod tools;
mod tree;
mod version;
mod wal;

pub use batch::WriteBatch;
pub use commit::log::Refused;
pub use commit::queue::Completion;
pub use context::resources::{RecoveryProgress, Resources};
pub use db::{Db, WriteHealth};
pub use format::value::Value;
pub use format::{FileNum, SeqNum};
pub use iter::Record;
pub use options::{CompactionGoal, Compression, Options, SyncLevel};
pub use stats::*;
pub use table::ReadTrace;
pub use tree::range::RangeIter;
pub use tree::read::Lookup;
pub use tree::snapshot::Snapshot;
