//! Recordings: samples with time stamps over a tree of stacks, and their file format.

mod file;
mod model;
mod sections;

pub use file::{decode, encode};
pub use model::{
    CpuSampling, Facts, Frame, Function, Kind, Module, Recording, Sample, Span, Stack, Thread,
};

#[cfg(test)]
mod tests;
