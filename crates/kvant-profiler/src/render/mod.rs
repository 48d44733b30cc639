//! Recordings as files that other programs and people read.

mod collapsed;
mod names;
mod pprof;
#[cfg(test)]
mod testing;

pub use collapsed::collapsed;
pub use pprof::pprof;
