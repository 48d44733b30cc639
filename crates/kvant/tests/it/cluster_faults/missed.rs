//! Records that are written only while a node is away, and not read until it is back: it has them
//! afterwards if the others have kept them for it, and by no later write or repair.

use super::request;
use std::net::SocketAddr;

/// Of each kind: overwritten, deleted, and new.
const KIND_COUNT: usize = 50;

pub(crate) struct Missed {
    prefix: String,
}

impl Missed {
    /// Stores, on all nodes, what is overwritten and deleted later. Each round has its own keys.
    pub(crate) fn prepare(addr: SocketAddr, round: usize) -> Missed {
        let missed = Missed { prefix: format!("missed-{round}") };
        for key in missed.keys().take(2 * KIND_COUNT) {
            let id = format!("{key}&replicas=3/3");
            assert_eq!(request(addr, "PUT", &id, "before").0, 201, "{key}");
        }
        missed
    }

    /// Writes, by quorum, what the node misses.
    pub(crate) fn write(&self, addr: SocketAddr) {
        for (number, key) in self.keys().enumerate() {
            let (method, body, expected) = match number / KIND_COUNT {
                1 => ("DELETE", "", 202),
                _ => ("PUT", "missed", 201),
            };
            assert_eq!(request(addr, method, &key, body).0, expected, "{key}");
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = String> + use<> {
        let prefix = self.prefix.clone();
        (0..3 * KIND_COUNT).map(move |number| format!("{prefix}-{number}"))
    }

    /// Checks what the node has by itself.
    pub(crate) fn check(&self, found: &[Option<Vec<u8>>]) {
        assert_eq!(found.len(), 3 * KIND_COUNT);
        for ((number, key), value) in self.keys().enumerate().zip(found) {
            let expected = (number / KIND_COUNT != 1).then_some(&b"missed"[..]);
            assert_eq!(value.as_deref(), expected, "{key}: what the node missed is not there");
        }
    }
}
