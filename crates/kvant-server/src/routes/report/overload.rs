//! What was refused, and how the pool of workers does.

use crate::admission::{Class, Refusal};
use crate::http::metrics_text::{append, family, header, metric};
use crate::routes::server_state::ServerState;
use crate::timing::as_us;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Members of `server` in `/v0/stats`. `pool` is null where selectors do everything themselves.
pub(super) fn json(server: &ServerState) -> [(String, Value); 3] {
    // An overload that is over ends when somebody looks.
    server.refusals.look(server.env.clock.monotonic_ns());
    let mut refused = Vec::new();
    refusals(server, |class, reason, count| {
        if count > 0 {
            refused.push(json!({ "class": class, "reason": reason, "count": count }));
        }
    });
    [
        ("refused".to_string(), refused.into()),
        ("overloaded".to_string(), server.refusals.is_overloaded().into()),
        ("pool".to_string(), pool_json(server)),
    ]
}

fn pool_json(server: &ServerState) -> Value {
    let Some(pool) = &server.pool else {
        return Value::Null;
    };
    let stats = pool.stats();
    json!({
        "workers": stats.worker_count,
        "workers_busy": stats.busy_count,
        "queue_capacity": stats.queue_capacity,
        "queued": by_class(stats.queued),
        "queued_max": stats.queued_max,
        "done": by_class(stats.done),
        "cost_us": by_class(stats.cost_ns.map(as_us)),
        "limited": by_class(stats.limited),
        "hand_overs": stats.hand_over_count,
        "wakes": stats.wake_count,
    })
}

fn by_class<T: Into<Value>>(figures: [T; Class::COUNT]) -> Value {
    let names = Class::ALL.map(|class| class.name().to_string());
    names.into_iter().zip(figures.map(Into::into)).collect::<Map<String, Value>>().into()
}

/// Calls `visit` with each class, reason and count of refused requests.
fn refusals(server: &ServerState, mut visit: impl FnMut(&'static str, &'static str, u64)) {
    for class in Class::ALL {
        for reason in Refusal::ALL {
            visit(class.name(), reason.name(), server.refusals.count(class, reason));
        }
    }
}

/// Appends the same in the Prometheus text format.
pub(super) fn write_metrics(server: &ServerState, out: &mut String) {
    server.refusals.look(server.env.clock.monotonic_ns());
    header(out, "kvant_refused_total", "counter", "Requests that were not done.");
    refusals(server, |class, reason, count| {
        append(
            out,
            format_args!("kvant_refused_total{{class=\"{class}\",reason=\"{reason}\"}} {count}\n"),
        );
    });
    let overloaded = f64::from(u8::from(server.refusals.is_overloaded()));
    metric(out, "kvant_overloaded", "gauge", "1 while requests are refused.", overloaded);
    let Some(pool) = &server.pool else {
        return;
    };
    let stats = pool.stats();
    for (name, kind, help, figure) in [
        ("workers", "gauge", "Threads of the pool.", stats.worker_count as f64),
        ("workers_busy", "gauge", "Threads at work now.", stats.busy_count as f64),
        ("queue_capacity", "gauge", "Requests that may wait.", stats.queue_capacity as f64),
        (
            "queued_max",
            "gauge",
            "The most requests that ever waited together.",
            stats.queued_max as f64,
        ),
        (
            "hand_overs_total",
            "counter",
            "Times that selectors handed work over.",
            stats.hand_over_count as f64,
        ),
        (
            "wakes_total",
            "counter",
            "Times that a sleeping worker was woken.",
            stats.wake_count as f64,
        ),
    ] {
        metric(out, &format!("kvant_pool_{name}"), kind, help, figure);
    }
    write_by_class(out, "queued", "gauge", "Requests that wait now.", stats.queued);
    write_by_class(out, "done_total", "counter", "Requests done.", stats.done);
    write_by_class(
        out,
        "cost_seconds",
        "gauge",
        "What a request costs a worker, smoothed.",
        stats.cost_ns.map(|ns| ns as f64 / 1e9),
    );
    write_by_class(
        out,
        "limited",
        "gauge",
        "1 while the adaptive limit holds a class down.",
        stats.limited.map(u8::from),
    );
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
