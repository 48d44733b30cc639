//! Profiles of the own process: where CPU time goes, who allocates, what threads wait for; each
//! sample with its time and with what its thread was working on.
//!
//! - [`collect`]: the samplers. They run inside of what they measure: nothing there allocates or
//!   locks while it takes a sample.
//! - [`recording`]: what they saw, as data and as a file.
//! - [`symbols`]: names for addresses, outside of the threads that serve.
//! - [`render`]: collapsed stacks, pprof, HTML.
//!
//! Without the cargo feature `collect` there are no samplers: recordings of others can still be
//! read and drawn.
//!
//! `docs/profiling.md` says how to read the pictures.

#[cfg(feature = "collect")]
pub mod collect;
pub mod recording;
pub mod render;
pub mod symbols;
