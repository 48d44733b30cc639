//! A load generator without coordinated omission: requests follow a plan, and latency counts from
//! the planned time.
//!
//! It speaks HTTP/1.1 to an address and depends on neither the engine nor the server.
//!
//! The way of a request: `plan` sets the time, a [`source`] (a fixed request, a native workload or
//! a Lua script) makes the bytes, a worker's event loop writes them on a free connection and parses
//! the response. [`record`] keeps histograms of response time (from the plan), service time (from
//! the write) and the generator's lateness; [`outcome`] is the result of a phase. [`report`] prints
//! it in wrk2's format, as JSON, `.hlog` and `.hgrm`.
//!
//! wrk and wrk2 are the models of the command line, the Lua interface and the text output. Gil
//! Tene's HdrHistogram and his talks on coordinated omission are those of the measurement.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

pub mod assertion;
pub mod compare;
pub mod config;
pub mod disturbance;
pub mod find_max;
pub mod histogram;
mod http;
pub mod lateness;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an event loop owns its thread; the coordinator waits for many workers"
)]
pub mod load;
pub mod machine;
#[expect(clippy::disallowed_types, reason = "tries the addresses of a name")]
mod net;
pub mod op;
pub mod outcome;
mod plan;
pub mod record;
pub mod report;
pub mod request;
#[expect(clippy::disallowed_types, reason = "tries the addresses of a name")]
pub mod script;
pub mod source;
pub mod target;
pub mod units;
pub mod verdict;
mod worker;
pub mod workload;

pub use config::{Arrival, LoadConfig, Phase, Rate, StatusSet};
pub use histogram::Histogram;
pub use load::{Load, Stopper};
pub use op::{OpId, OpNames};
pub use outcome::Outcome;
pub use record::{Errors, Interval, OpRecord};
pub use source::{Batch, Expected, Fate, RequestSource, ResponseView};
pub use target::{Address, Target};
