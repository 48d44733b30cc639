//! The binary from outside: every test starts the real `kvant`.

mod clients;
mod connection;
mod db;
mod generated;
mod kill_nine;
mod kvant_command;
mod ledger;
mod restart;
mod serve;
mod server_process;
mod settings;
