//! Tables: immutable sorted files of internal keys. The format is `docs/formats/table.md`.
//!
//! - [`TableBuilder`] writes a table; [`Table`] reads it: [`Table::get`], [`Table::iter`],
//!   [`Table::verify`].
//! - `stored` is the encoding common to all blocks; `data_block`, `filter`, `index`, `properties`
//!   and `footer` are the parts of a file; `file_reader` reads one part, `block_reader` data blocks
//!   in sequence; `checks` is for entries that go from one table into another.
//!
//! Threads: a [`Table`] is immutable and shared; each iterator belongs to one thread at a time.

mod block;
mod block_reader;
mod builder;
mod checks;
mod data_block;
mod file_reader;
mod filter;
mod footer;
mod index;
mod iter;
mod point_read;
mod properties;
mod reader;
mod salvage;
mod spares;
mod stats;
mod stored;
mod verify;

pub(crate) use block::FoundEntry;
pub(crate) use builder::{FinishedTable, TableBuilder, TableOptions};
pub(crate) use filter::bits_per_key_for;
pub(crate) use iter::TableIter;
pub use point_read::ReadTrace;
pub(crate) use point_read::{PointRead, PointResult, RangeTrace, Stop, Wait};
pub(crate) use properties::TableProperties;
pub(crate) use reader::{Table, TableContext};

#[cfg(test)]
mod tests;
