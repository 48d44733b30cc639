//! A keyspace of Cassandra or ScyllaDB (`kvant-cassandra`), as the server sees it.

use super::{
    Capability, Pending, ReadTrace, Records, RemoteAsk, RemoteCourse, RemoteStore, Store, Write,
    WriteHealth,
};
use crate::http::metrics_text::{append, family, header, metric};
use bytes::Bytes;
use kvant_base::{Error, ErrorKind, Log, Result};
use kvant_cassandra::{Ask, Cluster, Course, NodeStats, Range, Stats};
use serde_json::json;
use std::pin::Pin;
use std::sync::Arc;

type NodeMetric = (&'static str, &'static str, &'static str, fn(&NodeStats) -> u64);

const NODE_METRICS: [NodeMetric; 9] = [
    ("in_flight", "gauge", "Attempts in flight.", |node| node.in_flight.into()),
    ("in_flight_limit", "gauge", "The most attempts that may be in flight now.", |node| {
        node.in_flight_limit.into()
    }),
    ("skips_total", "counter", "How often the node was passed over, full or silent.", |node| {
        node.skip_count
    }),
    ("errors_total", "counter", "Attempts that failed.", |node| node.error_count),
    ("retries_total", "counter", "Of these, followed by another attempt.", |node| node.retry_count),
    ("timeouts_total", "counter", "Attempts without an answer in --cluster-timeout.", |node| {
        node.timeout_count
    }),
    ("replica_timeouts_total", "counter", "Attempts answered with a time-out of others.", |node| {
        node.replica_timeout_count
    }),
    ("second_reads_total", "counter", "Second reads sent to the node.", |node| {
        node.second_read_count
    }),
    ("second_reads_won_total", "counter", "Of these, answered before the first.", |node| {
        node.second_read_won_count
    }),
];

fn label(node: &NodeStats) -> String {
    format!("node=\"{}\"", node.addr)
}

/// Histograms of what was answered.
fn write_times(stats: &Stats, out: &mut String) {
    const NAME: &str = "kvant_cluster_phase_seconds";
    header(out, NAME, "histogram", "Time of requests that a node answered, by kind and phase.");
    for node in &stats.nodes {
        for times in &node.times {
            let labels =
                format!("{},kind=\"{}\",phase=\"{}\"", label(node), times.kind, times.phase);
            let mut total = 0;
            for (up_to_us, count) in &times.counts_up_to_us {
                total += count;
                let bound =
                    up_to_us.map_or_else(|| "+Inf".to_string(), |us| (us as f64 / 1e6).to_string());
                append(out, format_args!("{NAME}_bucket{{{labels},le=\"{bound}\"}} {total}\n"));
            }
            let sum = times.total_us as f64 / 1e6;
            append(
                out,
                format_args!("{NAME}_sum{{{labels}}} {sum}\n{NAME}_count{{{labels}}} {total}\n"),
            );
        }
    }
}

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
        let connected = nodes
            .iter()
            .map(|(addr, is_connected)| (format!("node=\"{addr}\""), u8::from(*is_connected)));
        let help = "Whether there is a connection with the node.";
        family(out, "kvant_cluster_node_connected", "gauge", help, connected);
        for (name, kind, help, figure) in NODE_METRICS {
            let rows = stats.nodes.iter().map(|node| (label(node), figure(node)));
            family(out, &format!("kvant_cluster_{name}"), kind, help, rows);
        }
        write_times(&stats, out);
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

    fn get(
        &self,
        key: &[u8],
        ask: RemoteAsk,
    ) -> Pending<'static, (Result<Option<Bytes>>, RemoteCourse)> {
        let got = self.cluster.get(key, asked(ask));
        Box::pin(async move {
            let (result, course) = got.await;
            (result, shown(course))
        })
    }

    fn write(&self, write: &Write, ask: RemoteAsk) -> Pending<'static, (Result<()>, RemoteCourse)> {
        let written = match &write.value {
            Some(value) => self.cluster.put(&write.key, value.clone(), write.ttl_ms, asked(ask)),
            None => self.cluster.delete(&write.key, asked(ask)),
        };
        Box::pin(async move {
            let (result, course) = written.await;
            (result, shown(course))
        })
    }

    fn keep_own_connections(&self, log: Arc<dyn Log>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(self.cluster.keep_own_connections(log))
    }

    fn trace_json(&self, id: u128) -> Option<serde_json::Value> {
        serde_json::to_value(self.cluster.trace(id)?).ok()
    }
}

fn asked(ask: RemoteAsk) -> Ask {
    Ask { ack_count: ask.ack_count, is_traced: ask.is_traced }
}

fn shown(course: Course) -> RemoteCourse {
    RemoteCourse {
        node: course.node,
        attempt_count: course.attempt_count,
        second_read_won: course.second_read_won,
        before_ns: course.before_ns,
        trace_id: course.trace_id,
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

    fn held_bytes(&self) -> usize {
        Range::held_bytes(self)
    }

    fn likely_bytes(&self) -> usize {
        Range::likely_bytes(self)
    }

    fn fetch(&mut self) -> Pending<'_, Result<()>> {
        Box::pin(Range::fetch(self))
    }
}
