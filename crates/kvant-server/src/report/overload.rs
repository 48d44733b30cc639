//! What was refused, and how the pool of workers does.

use super::{append, metric};
use crate::admission::{Class, Refusal};
use crate::selector::Shared;
use crate::timing::as_us;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Members of `server` in `/v0/stats`. `pool` is null where selectors do everything themselves.
pub(super) fn json(shared: &Shared) -> [(String, Value); 3] {
    // An overload that is over ends when somebody looks.
    shared.refusals.look(shared.env.clock.monotonic_ns());
    let mut refused = Vec::new();
    refusals(shared, |class, reason, count| {
        if count > 0 {
            refused.push(json!({ "class": class, "reason": reason, "count": count }));
        }
    });
    [
        ("refused".to_string(), refused.into()),
        ("overloaded".to_string(), shared.refusals.is_overloaded().into()),
        ("pool".to_string(), pool_json(shared)),
    ]
}

fn pool_json(shared: &Shared) -> Value {
    let Some(pool) = &shared.pool else {
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
fn refusals(shared: &Shared, mut visit: impl FnMut(&'static str, &'static str, u64)) {
    for class in Class::ALL {
        for reason in Refusal::ALL {
            visit(class.name(), reason.name(), shared.refusals.count(class, reason));
        }
    }
}

/// Appends the same in the Prometheus text format.
pub(super) fn write_metrics(shared: &Shared, out: &mut String) {
    shared.refusals.look(shared.env.clock.monotonic_ns());
    out.push_str(
        "# HELP kvant_refused_total Requests that were not done.\n# TYPE kvant_refused_total counter\n",
    );
    refusals(shared, |class, reason, count| {
        append(
            out,
            format_args!("kvant_refused_total{{class=\"{class}\",reason=\"{reason}\"}} {count}\n"),
        );
    });
    let overloaded = f64::from(u8::from(shared.refusals.is_overloaded()));
    metric(out, "kvant_overloaded", "gauge", "1 while requests are refused.", overloaded);
    let Some(pool) = &shared.pool else {
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
    append(out, format_args!("# HELP kvant_pool_{name} {help}\n# TYPE kvant_pool_{name} {kind}\n"));
    for (class, figure) in Class::ALL.into_iter().zip(figures) {
        append(out, format_args!("kvant_pool_{name}{{class=\"{}\"}} {figure}\n", class.name()));
    }
}
