//! Tests of the engine through its public interface, on simulated and real disks.

#![expect(clippy::print_stdout, reason = "random tests print their seed")]

mod behaviour;
mod checkpoints;
mod common;
mod corruption;
mod damage;
mod deletes;
mod events;
mod faults;
mod full_disk;
mod liveness;
mod model;
mod mutations;
mod pacing;
mod pausing;
mod power_loss;
mod reads;
mod repairs;
mod replay;
mod restarts;
mod starts;
mod threads;
mod wrong_blocks;
