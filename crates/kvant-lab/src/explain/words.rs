//! Figures in words.

use super::model::Explanation;
use kvant_base::timestamp;

/// A time: `1.25 ms`.
pub(crate) fn time(ns: u64) -> String {
    // What rounds to 1000 of a unit is 1 of the next.
    match ns as f64 {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => format!("{} us", digits(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        ns => format!("{} s", digits(ns / 1e9)),
    }
}

/// A time of the monotonic clock as a time of day in UTC, with milliseconds; without a wall clock,
/// as seconds.
pub(crate) fn clock(at_ns: u64, wall_origin_ns: Option<i64>) -> String {
    match wall_origin_ns.and_then(|origin_ns| at_ns.checked_add_signed(origin_ns)) {
        Some(wall_ns) => {
            let text = timestamp::format(wall_ns / 1_000_000);
            text.split_once('T').map_or(text.clone(), |(_, time)| time.replace('Z', ""))
        }
        None => format!("{:.3} s", at_ns as f64 / 1e9),
    }
}

/// A part in whole per cent, with one decimal below 10.
pub(crate) fn percent(part: f64) -> String {
    match part * 100.0 {
        small if small > 0.0 && small < 9.95 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    }
}

/// A count in a second: a whole number, with one decimal below 10.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 9.95 {
        format!("{per_second:.1}")
    } else {
        format!("{per_second:.0}")
    }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Begin and end of the explained time.
pub(crate) fn span(explanation: &Explanation) -> String {
    let at = |at_ns| clock(at_ns, explanation.wall_origin_ns);
    let zone = if explanation.wall_origin_ns.is_some() { " UTC" } else { "" };
    format!(
        "{} to {}{zone}",
        at(explanation.start_ns),
        at(explanation.start_ns + explanation.length_ns)
    )
}
