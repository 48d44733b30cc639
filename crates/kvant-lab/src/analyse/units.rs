//! Figures in words, the same in both languages.

/// A rate with its significant digits: `36,400/s`.
pub(super) fn rate(per_s: f64) -> String {
    match per_s {
        small if small < 10.0 => format!("{small:.1}/s"),
        // More digits would be noise.
        large if large >= 10_000.0 => format!("{}/s", grouped((large / 100.0).round() * 100.0)),
        middle => format!("{}/s", grouped(middle.round())),
    }
}

/// A time: `1.25 ms`.
pub(super) fn time(ns: f64) -> String {
    // What rounds to 1000 of a unit is 1 of the next.
    match ns {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => format!("{} us", digits(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        ns => format!("{} s", digits(ns / 1e9)),
    }
}

/// A size: `1.5 MiB`.
pub(super) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024.0 {
        return format!("{bytes:.0} bytes");
    }
    let mut value = bytes / 1_024.0;
    let mut unit = 0;
    while value >= 1_024.0 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{} {}", digits(value), UNITS[unit])
}

/// Three significant digits.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Thousands separated by commas.
pub(super) fn grouped(value: f64) -> String {
    let text = format!("{value:.0}");
    let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests;
