//! The engine through its public interface, on simulated and real disks.

mod behaviour;
mod common;
mod corruption;
mod faults;
mod model;
mod power_loss;
mod threads;
