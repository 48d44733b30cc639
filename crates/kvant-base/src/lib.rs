//! Types that every Kvant crate shares.
//!
//! This crate does no I/O, starts no threads and reads no clock: its callers pass in times and
//! listeners.
//!
//! - [`error`]: one error type: its kind says what the caller must do, its details say where.
//! - [`size`], [`duration`]: the syntax of byte sizes and durations in settings (`64KiB`, `10ms`).
//! - [`limits`]: fixed bounds and the assertions between them.
//! - [`timestamp`]: wall-clock times as RFC 3339.
//! - [`varint`], [`checksum`]: encodings shared by all file formats.
//! - [`budget`]: the memory budget and its use by consumer.
//! - [`lock`]: named mutexes and condition variables without poisoning.
//! - [`events`]: a ring of recent flushes, compactions, stalls, slow fsyncs and overload.
//! - [`dilation`]: slows stages down for a time, to learn what faster ones would bring.
//! - [`tag`]: the calling thread's current activity, for profiles.
//! - [`wait`]: named waits, for profiles.
//! - [`log`]: the logging interface: named events with fields.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

pub mod budget;
pub mod checksum;
pub mod dilation;
pub mod duration;
pub mod error;
pub mod events;
pub mod limits;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "every other wait goes through these"
)]
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
