//! Load over real sockets against servers with known behaviour.

mod connections;
mod core;
mod harness;
mod known_servers;
mod machine;
mod plans;
mod result_files;
mod server;
mod sources;
mod store;
mod tls;
mod transports;
mod troublesome_servers;
mod workloads;
