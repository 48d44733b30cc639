//! Kvant's own chores, run as `cargo xtask NAME`.
fn main() {}
