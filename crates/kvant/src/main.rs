//! The `kvant` binary: command line and wiring.
fn main() {}
