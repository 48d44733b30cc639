//! The write-ahead log: one file per memtable, one record per commit group. Specified in
//! `docs/formats/wal.md`.
//!
//! - [`layout`]: encoding of the file header and of the header of a full record.
//! - [`short`]: encoding of the header of a short record.
//! - [`writer`]: appends records, each with one write call, and truncates after a failed one.
//! - [`reader`]: reads one file and decides what is corruption and where the log ends.
//! - [`scan`]: finds the record at an offset, or searches a file for records wherever they are.
//! - [`recovery`]: reads a sequence of files as one log.
//!
//! Invariants:
//! 1. a record is accepted only at the offset, in the file and with the first sequence number that
//!    it was written for;
//! 2. what is replayed is a prefix of what was written, and includes everything known to be synced;
//! 3. memory is bounded by one record and a window of fixed size.
//!
//! Threads: a writer belongs to one thread at a time; another thread may sync its file meanwhile.

mod layout;
mod reader;
mod recovery;
mod scan;
mod short;
mod writer;

pub(crate) use layout::PreviousWal;
pub(crate) use reader::WalRecord;
#[cfg(test)]
pub(crate) use reader::{WalEnd, WalEndReason, WalReader};
pub(crate) use recovery::{RecoveredWal, recover, salvage};
pub(crate) use writer::WalWriter;

#[cfg(test)]
mod tests;
