//! Settings of the engine.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`crate::Cluster`].
#[derive(Clone)]
pub struct Options {
    /// Addresses of nodes, `HOST:PORT` each; the others are learned from them.
    pub nodes: Vec<String>,
    /// The keyspace; created unless it exists. Letters, digits and underscores.
    pub keyspace: String,
    /// Whether a missing keyspace, or one of another schema, is an error: nothing is created.
    pub must_exist: bool,
    /// The datacenter whose nodes coordinate requests; `None`: any.
    pub datacenter: Option<String>,
    /// User and password.
    pub credentials: Option<(String, String)>,
    /// Certificates, in PEM, of those who may have signed a node's; `None`: no TLS.
    pub tls_ca: Option<PathBuf>,
    /// Nodes that store each record, when the keyspace is created. `None`: 3, or what it has.
    pub replica_count: Option<u32>,
    /// Partitions, when the keyspace is created. `None`: 256, or what it has.
    pub bucket_count: Option<u32>,
    /// Nodes that have to answer a request that does not say; `None`: more than half.
    pub ack_count: Option<u32>,
    /// Longest time of a request, with all attempts.
    pub timeout: Duration,
    /// Connections with each node, or with each of its shards.
    pub connection_count: usize,
    /// Whether a slow read is sent to a second node.
    pub has_second_reads: bool,
    /// Whether the requests in flight at a node are limited by what they cost.
    pub limits_adapt: bool,
}

pub(crate) const REPLICA_COUNT_DEFAULT: u32 = 3;
pub(crate) const BUCKET_COUNT_DEFAULT: u32 = 256;
