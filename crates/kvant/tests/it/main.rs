//! End-to-end tests: each starts the real `kvant`.

#![expect(clippy::print_stdout, reason = "random tests print their seed")]

mod brim;
mod checkpoints;
mod clients;
#[cfg(feature = "cassandra")]
mod cluster;
#[cfg(feature = "cassandra")]
mod cluster_away;
#[cfg(feature = "cassandra")]
mod cluster_copy;
#[cfg(feature = "cassandra")]
mod cluster_faults;
mod connection;
mod copy;
mod damage;
mod db;
mod explain;
mod full_disk;
mod generated;
mod idle_connections;
mod kill_nine;
mod kvant_command;
mod lab;
mod lab_compare;
mod lab_disturbed;
mod lab_endings;
mod lab_intervene;
mod lab_what_if;
mod ledger;
#[cfg(feature = "leveldb")]
mod leveldb;
mod load;
mod load_requests;
mod load_results;
mod load_workloads;
mod memory;
#[cfg(feature = "leveldb")]
mod metrics;
mod ownership;
mod profile;
mod restart;
mod serve;
mod server_process;
mod settings;
mod small_disk;
mod system_limits;
