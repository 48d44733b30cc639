//! Profiles of the own process: where it spends CPU time, what it allocates and what its threads
//! wait for. Each sample has its time and the activity of its thread.
//!
//! - [`collect`]: the samplers. They run inside of what they measure, so nothing there allocates or
//!   locks while it takes a sample.
//! - [`recording`]: the samples as data and as a file.
//! - [`symbols`]: names for addresses, resolved outside of serving threads.
//! - [`render`]: collapsed stacks, pprof, HTML.
//!
//! Without the cargo feature `collect` there are no samplers; recordings can still be read and
//! rendered.
//!
//! Time, files and threads come from kvant-env, with these exceptions, which neither a simulated
//! clock nor injected faults could replace. In `collect`: `clock` reads clocks in signal handlers
//! and CPU clocks of other threads; `chance` draws random numbers inside of the allocator;
//! `threads` keeps descriptors of `/proc/self/task` open and distinguishes ended threads from other
//! errors; `timer`, `handler` and `perf` set timers, handle their signal and open perf events;
//! `perf` maps memory that the kernel writes, and yields the processor until a signal handler has
//! left it. `maps` reads the link `/proc/self/exe`, and the crate addr2line maps the files that
//! `symbols` reads.
//!
//! `docs/profiling.md` explains the pages.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

#[cfg(feature = "collect")]
pub mod collect;
mod elf;
mod maps;
pub mod recording;
pub mod render;
pub mod symbols;
