//! Numbers for people: three significant digits and a unit, as on the profiler's page.

use crate::model::Measured;

const TIME_STEPS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("\u{b5}s", 1e3), ("ns", 1.0)];
const BYTE_STEPS: [(&str, f64); 5] = [
    ("TiB", (1u64 << 40) as f64),
    ("GiB", (1u64 << 30) as f64),
    ("MiB", (1u64 << 20) as f64),
    ("KiB", 1024.0),
    ("B", 1.0),
];

/// Three significant digits; whole numbers from 100 on, with commas.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || size == 0.0 {
        return grouped(value);
    }
    match size {
        10.0.. => format!("{value:.1}"),
        0.01.. => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn with_unit(value: f64, steps: &[(&str, f64)]) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let step = steps.iter().find(|(_, size)| value.abs() >= *size).or(steps.last());
    let (unit, size) = step.expect("there are steps");
    format!("{} {unit}", number(value / size))
}

/// Nanoseconds.
pub(super) fn time(ns: f64) -> String {
    with_unit(ns, &TIME_STEPS)
}

/// Bytes.
pub(super) fn bytes(bytes: f64) -> String {
    with_unit(bytes, &BYTE_STEPS)
}

/// A part of 1 in per cent.
pub(super) fn percent(part: f64) -> String {
    match part {
        0.0 => "0".to_owned(),
        _ if part.abs() < 0.001 => format!("{:.3} %", 100.0 * part),
        _ => format!("{:.2} %", 100.0 * part),
    }
}

/// A figure's cell: the median, and its range on hovering.
pub(super) fn cell(measured: Option<&Measured>, show: impl Fn(f64) -> String) -> String {
    let Some(Measured { median, min, max, .. }) = measured else {
        return "<td class=\"zero\">\u{2013}</td>".to_owned();
    };
    let class = if *median == 0.0 { " class=\"zero\"" } else { "" };
    format!("<td{class} title=\"{} \u{2013} {}\">{}</td>", show(*min), show(*max), show(*median))
}
