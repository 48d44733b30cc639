//! Load on small servers in this process.

mod core;
