//! The binary from outside: every test starts the real `kvant`.

mod generated;
mod kvant_command;
mod settings;
