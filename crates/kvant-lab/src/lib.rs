//! The lab: an experiment as one command.
//!
//! A *plan* (TOML) names subjects (servers), data, workloads and phases. *Conduct* runs them,
//! interleaved and watched, and leaves a run directory ([`record`]). *Analysis* reads the directory
//! and computes every figure ([`model::Report`]). The *report* renders that as a page, Markdown and
//! JSON.
//!
//! Invariants:
//! 1. The rooms meet in data alone: `conduct` writes a run directory, `analyse` reads it, `report`
//!    renders a [`model::Report`]. A report can be rebuilt from its directory at any time.
//! 2. The lab knows the generator and profiles, not the engine: every subject is a process or a URL
//!    that speaks HTTP.
//! 3. A disturbed attempt is never part of a figure.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

pub mod analyse;
pub mod comparison;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an experiment is processes, sockets, threads and real files"
)]
pub mod conduct;
pub mod explain;
pub mod markdown;
pub mod model;
pub mod plan;
pub mod record;
pub mod report;
