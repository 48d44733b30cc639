//! Runs of plans against a small server in the test's process, on a machine whose account the test
//! writes.

mod beside;
mod broken_subjects;
mod comparisons;
mod conduct;
mod elsewhere;
#[path = "../queue/exact.rs"]
mod exact;
mod fake_machine;
mod hanging;
mod interventions;
#[path = "../queue/mod.rs"]
mod queue;
mod queues;
mod repeats;
mod resume;
mod server;
mod staged;
mod stores;
#[path = "../synthetic/mod.rs"]
mod synthetic;
mod what_if;
