//! What is printed and written: text as wrk2 has it, JSON, HdrHistogram logs.

pub mod encoded;
pub mod hgrm;
pub mod hlog;
pub mod json;
pub mod progress;
pub mod summary;
#[cfg(test)]
pub(crate) mod testing;
pub mod wrk2;
