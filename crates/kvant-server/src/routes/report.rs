//! The server's own figures: for `/v0/stats` as JSON, for `/metrics` as Prometheus text.

mod overload;

use super::server_state::ServerState;
use crate::counters::{CLASSES, Counters, METHODS, ROUTE_ROWS, ROWS};
use crate::http::Route;
use crate::http::metrics_text::{family, metric};
use crate::timing;
use kvant_base::Consumer;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn sum(server: &ServerState, figure: impl Fn(&Counters) -> u64) -> u64 {
    server.counters.iter().map(|counters| figure(counters)).sum()
}

fn connections(server: &ServerState) -> impl Iterator<Item = usize> {
    let open = |counters: &Arc<Counters>| counters.connections.load(Ordering::Relaxed);
    server.counters.iter().map(open)
}

/// Route, method, status class and count of all requests that there were.
fn requests(server: &ServerState) -> Vec<(&'static str, &'static str, &'static str, u64)> {
    let mut rows = Vec::new();
    for row in 0..ROUTE_ROWS {
        let route = Route::ALL.get(row).map_or("unknown", |route| route.name());
        for (method, method_name) in METHODS.into_iter().enumerate() {
            for (class, class_name) in CLASSES.into_iter().enumerate() {
                let count = sum(server, |counters| counters.requests(row, method, class));
                if count > 0 {
                    rows.push((route, method_name, class_name, count));
                }
            }
        }
    }
    rows
}

/// The value of `server` in `/v0/stats`.
pub(super) fn json(server: &ServerState) -> Value {
    let mut members: Map<String, Value> = ROWS
        .iter()
        .map(|row| (row.name.to_string(), sum(server, |c| (row.counter)(c).get()).into()))
        .collect();
    let request_rows = requests(server).into_iter().map(|(route, method, class, count)| {
        json!({ "route": route, "method": method, "status": class, "count": count })
    });
    let budget = server.memory.budget();
    let memory: Map<String, Value> = Consumer::ALL
        .iter()
        .map(|&consumer| (consumer.name().to_string(), budget.used_bytes(consumer).into()))
        .collect();
    let clock = &server.env.clock;
    let monotonic_ns = clock.monotonic_ns();
    members.extend([
        ("requests".to_string(), request_rows.collect()),
        ("connections_open".to_string(), connections(server).sum::<usize>().into()),
        ("connections_open_by_selector".to_string(), connections(server).collect()),
        ("connections_max".to_string(), server.connections_max.into()),
        ("selectors".to_string(), server.counters.len().into()),
        ("uptime_us".to_string(), ((monotonic_ns - server.started_ns) / 1000).into()),
        // For readers on other machines that match their clocks with these.
        ("monotonic_ns".to_string(), monotonic_ns.into()),
        ("wall_ms".to_string(), clock.wall_ms().into()),
        ("events".to_string(), server.events.last_number().into()),
        ("memory_limit_bytes".to_string(), budget.limit_bytes().into()),
        ("memory_bytes".to_string(), memory.into()),
    ]);
    members.extend(overload::json(server));
    members.into()
}

/// Appends the server's metrics in the Prometheus text format.
pub(super) fn write_metrics(server: &ServerState, out: &mut String) {
    let request_rows = requests(server).into_iter().map(|(route, method, class, count)| {
        (format!("route=\"{route}\",method=\"{method}\",status=\"{class}\""), count)
    });
    family(out, "kvant_requests_total", "counter", "Requests responded to.", request_rows);
    for row in &ROWS {
        let total = sum(server, |c| (row.counter)(c).get());
        metric(out, &format!("kvant_{}_total", row.name), "counter", row.help, total);
    }
    let budget = server.memory.budget();
    let entries = server.events.last_number();
    let open = connections(server).sum::<usize>() as u64;
    for (name, kind, help, value) in [
        ("kvant_events_total", "counter", "Entries of /v0/events since the start.", entries),
        ("kvant_connections_open", "gauge", "Connections open now.", open),
        ("kvant_memory_limit_bytes", "gauge", "The memory budget.", budget.limit_bytes()),
    ] {
        metric(out, name, kind, help, value);
    }
    let used = Consumer::ALL
        .map(|consumer| (format!("consumer=\"{}\"", consumer.name()), budget.used_bytes(consumer)));
    family(out, "kvant_memory_bytes", "gauge", "Memory in use, by consumer.", used);
    overload::write_metrics(server, out);
    timing::write_metrics(&server.timings, out);
}
