//! A keyspace of Cassandra or ScyllaDB (`kvant-cassandra`), as the server sees it.

use super::{Capability, Pending, ReadTrace, Records, RemoteStore, Store, Write, WriteHealth};
use crate::http::metrics_text::{family, metric};
use bytes::Bytes;
use kvant_base::{Error, ErrorKind, Result};
use kvant_cassandra::{Cluster, NodeStats, Range};
use serde_json::json;

/// A [`Cluster`] behind the HTTP interface.
pub struct CassandraStore {
    cluster: Cluster,
}

impl CassandraStore {
    /// Serves `cluster`.
    pub fn new(cluster: Cluster) -> CassandraStore {
        CassandraStore { cluster }
    }
}

impl Store for CassandraStore {
    fn name(&self) -> &'static str {
        "cassandra"
    }

    fn has(&self, capability: Capability) -> bool {
        matches!(capability, Capability::Persistence | Capability::Ttl | Capability::Range)
    }

    fn range(&self, start: &[u8], end: Option<&[u8]>, count_max: u64) -> Result<Box<dyn Records>> {
        Ok(Box::new(self.cluster.range(start, end, count_max)))
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        let mut stats = serde_json::to_value(self.cluster.stats())?;
        stats["cluster"] = self.health_json();
        Ok(stats)
    }

    fn write_metrics(&self, out: &mut String) {
        let stats = self.cluster.stats();
        let nodes = self.cluster.nodes();
        let connected = nodes.iter().filter(|(_, is_connected)| *is_connected).count();
        for (name, help, value) in [
            ("nodes", "Nodes of the cluster.", nodes.len()),
            ("nodes_connected", "Nodes with a connection.", connected),
        ] {
            metric(out, &format!("kvant_cluster_{name}"), "gauge", help, value);
        }
        let rows = |figure: fn(&NodeStats) -> u64| {
            let row = move |node: &NodeStats| (format!("node=\"{}\"", node.addr), figure(node));
            stats.nodes.iter().map(row)
        };
        for (name, help, figure) in [
            (
                "attempts",
                "Attempts that succeeded.",
                (|node| node.counts_up_to_us.iter().map(|(_, count)| count).sum())
                    as fn(&NodeStats) -> u64,
            ),
            ("attempt_us", "Microseconds of them.", |node| node.total_us),
            ("errors", "Attempts that failed.", |node| node.error_count),
            ("retries", "Of these, followed by another attempt.", |node| node.retry_count),
        ] {
            family(out, &format!("kvant_cluster_{name}_total"), "counter", help, rows(figure));
        }
    }

    fn write_health(&self) -> WriteHealth {
        match self.cluster.nodes().iter().any(|(_, is_connected)| *is_connected) {
            true => WriteHealth::Good,
            false => WriteHealth::Away(Error::new(
                ErrorKind::Away,
                "there is no connection with any node",
            )),
        }
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

impl RemoteStore for CassandraStore {
    fn replica_count(&self) -> u32 {
        self.cluster.replica_count()
    }

    fn health_json(&self) -> serde_json::Value {
        let nodes = self.cluster.nodes();
        let nodes = nodes
            .iter()
            .map(|(addr, is_connected)| json!({ "address": addr, "connected": is_connected }));
        json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "replicas": self.cluster.replica_count(),
            "ack": self.cluster.default_ack_count(),
            "buckets": self.cluster.bucket_count(),
        })
    }

    fn get(&self, key: &[u8], ack_count: Option<u32>) -> Pending<'static, Option<Bytes>> {
        self.cluster.get(key, ack_count)
    }

    fn write(&self, write: &Write, ack_count: Option<u32>) -> Pending<'static, ()> {
        match &write.value {
            Some(value) => self.cluster.put(&write.key, value.clone(), write.ttl_ms, ack_count),
            None => self.cluster.delete(&write.key, ack_count),
        }
    }
}

impl Records for Range {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(self.take_next())
    }

    fn trace(&self) -> ReadTrace {
        ReadTrace::default()
    }

    fn must_fetch(&self) -> bool {
        Range::must_fetch(self)
    }

    fn fetch(&mut self) -> Pending<'_, ()> {
        Box::pin(Range::fetch(self))
    }
}
