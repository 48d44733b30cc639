//! A load generator that tells the truth: requests at a planned rate, latency counted from the
//! plan.
//!
//! It knows nothing of the engine or the server: it speaks HTTP/1.1 to an address.
//!
//! The way of a request: [`plan`] says when, a [`source`] (a fixed request, a native workload, a
//! Lua script) says what, a worker's event loop writes it on a free connection and reads the
//! answer, [`record`] keeps three histograms of it (response time from the plan, service time from
//! the write, the generator's own lateness), and [`outcome`] is what a phase of load came to.
//! [`report`] prints it as wrk2 does, as JSON, as `.hlog` and `.hgrm`.
//!
//! Ideas: wrk and wrk2 (command line, Lua interface, text output), Gil Tene's HdrHistogram and his
//! talks on coordinated omission.

pub mod assertion;
pub mod compare;
pub mod config;
mod disturbance;
pub mod find_max;
pub mod histogram;
mod http;
pub mod lateness;
pub mod load;
pub mod machine;
mod net;
pub mod op;
pub mod outcome;
mod plan;
pub mod record;
pub mod report;
pub mod request;
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
