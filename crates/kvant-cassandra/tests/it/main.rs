//! The engine on a real node, which `cargo xtask cluster-check` starts; these tests are ignored
//! otherwise.

#![expect(clippy::print_stdout, reason = "random tests print their seed")]

mod copies;
mod keyspaces;
mod node;
mod own_connections;
mod ranges;
mod records;
