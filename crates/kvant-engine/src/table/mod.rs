//! Tables: immutable sorted files of internal keys. The format is `docs/formats/table.md`.
//!
//! - [`TableBuilder`] writes one; [`Table`] reads it: [`Table::get`], [`Table::iter`],
//!   [`Table::verify`].
//! - `stored` is a block as it lies in the file, `data_block`, `filter`, `index`, `properties` and
//!   `footer` are the parts; `block_reader` reads data blocks in sequence.
//!
//! Threads: a [`Table`] is immutable and shared; each iterator belongs to one thread at a time.

mod block;
mod block_reader;
mod builder;
mod data_block;
mod filter;
mod footer;
mod index;
mod iter;
mod point_read;
mod properties;
mod reader;
mod salvage;
mod stats;
mod stored;
mod verify;

pub(crate) use block::{Block, FoundEntry};
#[cfg(test)]
pub(crate) use builder::FinishedTable;
pub(crate) use builder::{TableBuilder, TableOptions};
pub(crate) use filter::bits_per_key_for;
pub(crate) use iter::TableIter;
pub use point_read::ReadTrace;
pub(crate) use point_read::{
    Bounded, NotWaiting, PointRead, RangeTrace, ReadResult, Stop, Waiting,
};
pub(crate) use properties::TableProperties;
pub(crate) use reader::{Table, TableContext};
pub(crate) use stats::TableStats;

/// The cache of decoded blocks that all tables share.
pub(crate) type BlockCache = crate::cache::Cache<Block>;

#[cfg(test)]
mod tests;
