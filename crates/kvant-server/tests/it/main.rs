//! The server over real sockets, on a store in memory with faults on cue.

mod admin_listener;
mod bodies;
mod both_ways;
mod client;
mod engine;
mod entities;
mod entity;
mod express;
mod faults;
mod fixture;
mod heads;
mod lifecycle;
mod operator;
mod queries;
mod real_client;
mod store;
mod time_limits;
