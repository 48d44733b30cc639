//! The binary from outside: every test starts the real `kvant`.

mod db;
mod generated;
mod kvant_command;
mod serve;
mod server_process;
mod settings;
