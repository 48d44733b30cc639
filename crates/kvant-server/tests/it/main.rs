//! The server over real sockets, on a store in memory with injected faults.

mod admin_listener;
mod bodies;
mod both_ways;
mod client;
mod contract;
mod engine;
mod entities;
mod entity;
mod events;
mod fast_path;
mod faults;
mod fixture;
mod heads;
mod history;
mod lag;
mod latency;
mod lifecycle;
mod modes;
#[cfg(not(feature = "profiler"))]
mod no_profiler;
mod operator;
#[cfg(feature = "profiler")]
mod profile;
mod queries;
mod real_client;
mod sites;
mod slow;
mod slow_disk;
mod store;
mod time_limits;
mod turns;
