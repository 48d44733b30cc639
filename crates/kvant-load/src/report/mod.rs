//! Formats of results: wrk2's text and a summary, JSON, HdrHistogram logs and distributions.

pub mod hgrm;
pub mod hlog;
pub mod json;
pub mod progress;
pub mod summary;
#[cfg(test)]
pub(crate) mod testing;
pub mod wrk2;
