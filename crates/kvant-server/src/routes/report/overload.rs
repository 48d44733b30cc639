//! What was refused, and the state of the pool of workers.

use crate::admission::{Class, Refusal};
use crate::http::metrics_text::{family, metric};
use crate::routes::server_state::ServerState;
use crate::timing::as_us;
use crate::work::pool::PoolStats;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// The pool's plain figures: name, kind of metric, help, value. A counter's metric ends in
/// `_total`.
fn figures(stats: &PoolStats) -> [(&'static str, &'static str, &'static str, u64); 6] {
    let most = "The most requests that ever waited for workers together.";
    let hand_overs = "Times that selectors handed work over to the pool.";
    [
        ("workers", "gauge", "Threads of the pool.", stats.worker_count as u64),
        ("workers_busy", "gauge", "Threads of the pool at work now.", stats.busy_count as u64),
        (
            "queue_capacity",
            "gauge",
            "Requests that may wait for a worker.",
            stats.queue_capacity as u64,
        ),
        ("queued_max", "gauge", most, stats.queued_max as u64),
        ("hand_overs", "counter", hand_overs, stats.hand_over_count),
        ("wakes", "counter", "Times that a sleeping worker was woken.", stats.wake_count),
    ]
}

/// Members of `server` in `/v0/stats`. `pool` is null where selectors do everything themselves.
pub(super) fn json(server: &ServerState) -> [(String, Value); 3] {
    server.refusals.end_if_calm(server.env.clock.monotonic_ns());
    let refused = refusals(server).filter(|(.., count)| *count > 0).map(|(class, reason, count)| {
        json!({ "class": class.name(), "reason": reason.name(), "count": count })
    });
    [
        ("refused".to_string(), refused.collect()),
        ("overloaded".to_string(), server.refusals.is_overloaded().into()),
        ("pool".to_string(), server.pool.as_ref().map_or(Value::Null, |p| pool_json(&p.stats()))),
    ]
}

fn pool_json(stats: &PoolStats) -> Value {
    let plain = figures(stats).map(|(name, _, _, figure)| (name.to_string(), figure.into()));
    let mut members = Map::from_iter(plain);
    members.extend([
        ("queued".to_string(), by_class(stats.queued)),
        ("done".to_string(), by_class(stats.done)),
        ("cost_us".to_string(), by_class(stats.cost_ns.map(as_us))),
        ("limited".to_string(), by_class(stats.limited)),
    ]);
    members.into()
}

fn by_class<T: Into<Value>>(figures: [T; Class::COUNT]) -> Value {
    let names = Class::ALL.map(|class| class.name().to_string());
    names.into_iter().zip(figures.map(Into::into)).collect::<Map<String, Value>>().into()
}

fn refusals(server: &ServerState) -> impl Iterator<Item = (Class, Refusal, u64)> {
    let reasons = |class| Refusal::ALL.map(|reason| (class, reason));
    Class::ALL
        .into_iter()
        .flat_map(reasons)
        .map(|(class, reason)| (class, reason, server.refusals.count(class, reason)))
}

/// Appends the same in the Prometheus text format.
pub(super) fn write_metrics(server: &ServerState, out: &mut String) {
    server.refusals.end_if_calm(server.env.clock.monotonic_ns());
    let refused = refusals(server).map(|(class, reason, count)| {
        (format!("class=\"{}\",reason=\"{}\"", class.name(), reason.name()), count)
    });
    family(
        out,
        "kvant_refused_total",
        "counter",
        "Requests that were refused: nothing of them was done.",
        refused,
    );
    let overloaded = u8::from(server.refusals.is_overloaded());
    metric(out, "kvant_overloaded", "gauge", "1 while requests are refused.", overloaded);
    let Some(pool) = &server.pool else {
        return;
    };
    let stats = pool.stats();
    for (name, kind, help, figure) in figures(&stats) {
        let suffix = if kind == "counter" { "_total" } else { "" };
        metric(out, &format!("kvant_pool_{name}{suffix}"), kind, help, figure);
    }
    let cost_help = "What a request costs a worker, smoothed.";
    let limited_help = "1 while the adaptive limit holds a class down.";
    let cost_s = stats.cost_ns.map(|ns| ns as f64 / 1e9);
    write_by_class(out, "queued", "gauge", "Requests that wait for a worker now.", stats.queued);
    write_by_class(out, "done_total", "counter", "Requests that workers have done.", stats.done);
    write_by_class(out, "cost_seconds", "gauge", cost_help, cost_s);
    write_by_class(out, "limited", "gauge", limited_help, stats.limited.map(u8::from));
}

fn write_by_class<T: Display>(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    figures: [T; Class::COUNT],
) {
    let rows = Class::ALL.into_iter().zip(figures);
    let labelled = rows.map(|(class, figure)| (format!("class=\"{}\"", class.name()), figure));
    family(out, &format!("kvant_pool_{name}"), kind, help, labelled);
}
