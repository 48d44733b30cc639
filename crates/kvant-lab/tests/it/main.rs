//! Runs of plans against a small server in the test's process, on a machine whose account the test
//! writes.

mod conduct;
mod fake_machine;
mod server;
