//! Types that every Kvant crate shares.
//!
//! This crate does no I/O, starts no threads and reads no clock: what it needs of the world is
//! handed to it.
//!
//! - [`error`]: one error type whose kind says what the caller must do and whose details say where.
//! - [`size`], [`duration`]: how bytes and times are written in settings (`64KiB`, `10ms`).
//! - [`limits`]: every bound of the product, in one file, with the assertions that tie them
//!   together.
//! - [`timestamp`]: moments of the wall clock as RFC 3339.
//! - [`varint`], [`checksum`]: the two encodings that all file formats use.
//! - [`budget`]: the one memory budget and who uses how much of it.
//! - [`lock`]: mutexes with a name, a wait counter and no poisoning.
//! - [`events`]: the latest flushes, compactions, stalls, slow fsyncs and times of overload.
//! - [`tag`]: what the calling thread works on, for profiles.
//! - [`wait`]: waits with a kind and a name, for profiles.
//! - [`log`]: the log as components see it: named events with fields.

pub mod budget;
pub mod checksum;
pub mod duration;
pub mod error;
pub mod events;
pub mod limits;
pub mod lock;
pub mod log;
mod named_enum;
pub mod size;
pub mod tag;
pub mod timestamp;
pub mod varint;
pub mod wait;

pub use budget::{Consumer, MemoryBudget, Reservation};
pub use error::{Error, ErrorKind, Result};
pub use events::{Event, EventKind, Events};
pub use log::{Level, Log, NoLog};
