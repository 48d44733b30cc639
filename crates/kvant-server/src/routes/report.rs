//! The server's own figures: for `/v0/stats` as JSON, for `/metrics` as Prometheus text.

use super::server_state::ServerState;
use crate::counters::{CLASSES, Counter, Counters, METHODS, ROUTE_ROWS};
use crate::http::Route;
use crate::http::metrics_text::{append, family, header, metric};
use crate::timing;
use kvant_base::budget::CONSUMERS;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod overload;

/// A counter with its name and meaning.
struct Row {
    name: &'static str,
    help: &'static str,
    counter: fn(&Counters) -> &Counter,
}

/// Every counter of the server but the requests by route.
const ROWS: [Row; 15] = [
    Row { name: "connections_accepted", help: "Connections accepted.", counter: |c| &c.accepted },
    Row {
        name: "accept_waits",
        help: "Times that accepting waited at the limit of connections.",
        counter: |c| &c.accept_waits,
    },
    Row {
        name: "idle_connections_closed",
        help: "Connections closed after being open without a request for too long.",
        counter: |c| &c.idle_closed,
    },
    Row {
        name: "head_timeouts",
        help: "Requests whose head did not come in time.",
        counter: |c| &c.head_timeouts,
    },
    Row {
        name: "body_timeouts",
        help: "Requests whose body did not come in time.",
        counter: |c| &c.body_timeouts,
    },
    Row {
        name: "received_bytes",
        help: "Bytes read from clients.",
        counter: |c| &c.received_bytes,
    },
    Row {
        name: "sent_bytes",
        help: "Bytes that the kernel took for clients.",
        counter: |c| &c.sent_bytes,
    },
    Row {
        name: "write_batches",
        help: "Batches of writes that the store took.",
        counter: |c| &c.batches,
    },
    Row {
        name: "batched_writes",
        help: "Writes in those batches.",
        counter: |c| &c.batched_writes,
    },
    Row {
        name: "write_stalls",
        help: "Times that writes began to wait for a stall.",
        counter: |c| &c.stalls,
    },
    Row {
        name: "writes_stalled_out",
        help: "Writes refused after waiting too long.",
        counter: |c| &c.stalled_out,
    },
    Row {
        name: "memory_refusals",
        help: "Requests refused for want of memory.",
        counter: |c| &c.memory_refusals,
    },
    Row {
        name: "ranges_aborted",
        help: "Ranges broken off by an error.",
        counter: |c| &c.ranges_aborted,
    },
    Row {
        name: "readers_cut",
        help: "Readers that took nothing for too long.",
        counter: |c| &c.readers_cut,
    },
    Row {
        name: "lingers_timed_out",
        help: "Clients that went on sending after their connection's last answer.",
        counter: |c| &c.lingers_timed_out,
    },
];

fn sum(server: &ServerState, figure: impl Fn(&Counters) -> u64) -> u64 {
    server.counters.iter().map(|counters| figure(counters)).sum()
}

fn connections_open(server: &ServerState) -> u64 {
    sum(server, |counters| counters.connections.load(Ordering::Relaxed) as u64)
}

fn connections_by_selector(server: &ServerState) -> Value {
    let open = |counters: &Arc<Counters>| counters.connections.load(Ordering::Relaxed);
    server.counters.iter().map(open).collect()
}

fn route_name(row: usize) -> &'static str {
    Route::ALL.get(row).map_or("unknown", |route| route.name())
}

/// Calls `visit` with route, method, status class and count of all requests that there were.
fn requests(
    server: &ServerState,
    mut visit: impl FnMut(&'static str, &'static str, &'static str, u64),
) {
    for row in 0..ROUTE_ROWS {
        for (method, method_name) in METHODS.into_iter().enumerate() {
            for (class, class_name) in CLASSES.into_iter().enumerate() {
                let count = sum(server, |counters| counters.requests(row, method, class));
                if count > 0 {
                    visit(route_name(row), method_name, class_name, count);
                }
            }
        }
    }
}

/// The value of `server` in `/v0/stats`.
pub(super) fn json(server: &ServerState) -> Value {
    let mut members: Map<String, Value> = ROWS
        .iter()
        .map(|row| (row.name.to_string(), sum(server, |c| (row.counter)(c).get()).into()))
        .collect();
    let mut request_rows = Vec::new();
    requests(server, |route, method, class, count| {
        request_rows
            .push(json!({ "route": route, "method": method, "status": class, "count": count }));
    });
    let budget = server.memory.budget();
    let memory: Map<String, Value> = CONSUMERS
        .iter()
        .map(|&consumer| (consumer.name().to_string(), budget.used_bytes(consumer).into()))
        .collect();
    let uptime_us = (server.env.clock.monotonic_ns() - server.started_ns) / 1000;
    members.extend([
        ("requests".to_string(), request_rows.into()),
        ("connections_open".to_string(), connections_open(server).into()),
        ("connections_open_by_selector".to_string(), connections_by_selector(server)),
        ("connections_max".to_string(), server.connections_max.into()),
        ("selectors".to_string(), server.counters.len().into()),
        ("uptime_us".to_string(), uptime_us.into()),
        ("events".to_string(), server.events.last_number().into()),
        ("memory_limit_bytes".to_string(), budget.limit_bytes().into()),
        ("memory_bytes".to_string(), memory.into()),
    ]);
    members.extend(overload::json(server));
    members.into()
}

/// Appends the server's metrics in the Prometheus text format.
pub(super) fn write_metrics(server: &ServerState, out: &mut String) {
    header(out, "kvant_requests_total", "counter", "Requests answered.");
    requests(server, |route, method, class, count| {
        let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{class}\"");
        append(out, format_args!("kvant_requests_total{{{labels}}} {count}\n"));
    });
    for row in &ROWS {
        let total = sum(server, |c| (row.counter)(c).get());
        metric(out, &format!("kvant_{}_total", row.name), "counter", row.help, total);
    }
    metric(
        out,
        "kvant_events_total",
        "counter",
        "Entries of /v0/events since the start.",
        server.events.last_number(),
    );
    let open = connections_open(server);
    metric(out, "kvant_connections_open", "gauge", "Connections open now.", open);
    let budget = server.memory.budget();
    metric(out, "kvant_memory_limit_bytes", "gauge", "The memory budget.", budget.limit_bytes());
    family(
        out,
        "kvant_memory_bytes",
        "gauge",
        "Memory in use, by consumer.",
        CONSUMERS.map(|consumer| {
            (format!("consumer=\"{}\"", consumer.name()), budget.used_bytes(consumer))
        }),
    );
    overload::write_metrics(server, out);
    timing::write_metrics(&server.timings, out);
}
