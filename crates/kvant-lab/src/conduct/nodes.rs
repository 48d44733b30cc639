//! Nodes of a subject's cluster on this machine: their CPU time is not that of others.
//!
//! Nodes elsewhere need nothing of this machine's, and are not looked for.

use crate::plan::Subject;
use kvant_env::host::procfs::ProcFs;
use std::net::{SocketAddr, ToSocketAddrs};

/// Processes that listen where `subject` reaches its cluster. Nodes on the loopback network are
/// all that have the port: a server learns of them from one.
pub(super) fn on_this_machine(subject: &Subject, proc: &ProcFs) -> Vec<u32> {
    let nodes = subject.cluster_nodes().into_iter();
    let addresses = nodes.filter_map(|node| node.to_socket_addrs().ok()).flatten();
    let is_here = |address: &SocketAddr| proc.is_own_address(address.ip());
    let mut pids: Vec<u32> = addresses
        .filter(is_here)
        .flat_map(|address| {
            proc.tcp_listeners_at(|other| {
                let is_beside = address.ip().is_loopback() && other.ip().is_loopback();
                let is_at = other.ip() == address.ip() || other.ip().is_unspecified();
                other.port() == address.port() && (is_at || is_beside)
            })
        })
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[cfg(test)]
mod tests;
