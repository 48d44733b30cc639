//! Numbers in wrk's notation: `10k` requests, `1m` of time, `828.07us`, `1.28MB`.
//!
//! Input is a whole number and an optional unit, in upper or lower case. Unlike wrk, rates may have
//! decimals (`1.5k`), and times the units `ms` and `us`. Errors are sentences with the text and the
//! accepted forms.
//!
//! Output changes to the next unit at 0.85 of it (`0.93ms`, but `828.07us`), and never reaches the
//! last unit of a list: two hours are `120m`. If the third decimal is exactly a half, the second
//! may differ from wrk's, which computes in 80 bits.

use std::time::Duration;

const METRIC: [(&str, u64); 6] = [
    ("", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("p", 1_000_000_000_000_000),
];
/// Units of time, in microseconds.
const TIME: [(&str, u64); 6] = [
    ("", 1_000_000),
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
];

/// The part of a unit from which on it is used.
const NEXT_UNIT_FROM: f64 = 0.85;

/// Parses a whole number such as `64`, `10k`, `1M`.
pub fn parse_count(text: &str) -> Result<u64, String> {
    scan(text, &METRIC).ok_or_else(|| {
        format!("`{text}` is not a count: write a whole number with k, M, G, T or P, such as 64, 10k, 1M")
    })
}

/// Parses a time such as `30`, `30s`, `1m`, `2h`, `250ms`, `50us`. The default unit is seconds, as
/// in wrk.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    scan(text, &TIME).map(Duration::from_micros).ok_or_else(|| {
        format!("`{text}` is not a time: write a whole number with us, ms, s, m or h (s if there is none), such as 30, 1m, 250ms")
    })
}

/// Parses requests a second, such as `500`, `10k`, `1.5k`. 0 is a closed loop.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let problem = || {
        format!(
            "`{text}` is not a rate: write requests a second with k, M or G, such as 500, 10k, 1.5k"
        )
    };
    let (digits, unit) = split(text);
    let is_decimal = digits.bytes().filter(|&b| b == b'.').count() <= 1
        && digits.bytes().any(|b| b.is_ascii_digit());
    if !is_decimal {
        return Err(problem());
    }
    let number: f64 = digits.parse().map_err(|_| problem())?;
    Ok(number * factor(unit, &METRIC).ok_or_else(problem)? as f64)
}

/// Parses rates separated by commas: `10k`, `10k,20k,40k`. Only a single rate may be 0.
pub fn parse_rates(text: &str) -> Result<Vec<f64>, String> {
    let rates = text.split(',').map(parse_rate).collect::<Result<Vec<f64>, String>>()?;
    if rates.len() > 1 && rates.contains(&0.0) {
        return Err(format!(
            "`{text}`: a rate of 0 is a closed loop and cannot be a step among others"
        ));
    }
    Ok(rates)
}

/// Parses a ramp of rates, which are not both 0: `0..50k`, `50k..10k`.
pub fn parse_ramp(text: &str) -> Result<(f64, f64), String> {
    let (from, to) = text.split_once("..").ok_or_else(|| {
        format!("`{text}` is not a ramp: write the first and the last rate, such as 0..50k")
    })?;
    let (from, to) = (parse_rate(from)?, parse_rate(to)?);
    if from == 0.0 && to == 0.0 {
        return Err(format!("`{text}`: a ramp from 0 to 0 plans no request"));
    }
    Ok((from, to))
}

/// A time in microseconds: `828.07us`, `0.93ms`, `1.37s`, `1.20m`.
pub fn format_time_us(us: f64) -> String {
    if us >= 1_000_000.0 {
        return scaled(us / 1_000_000.0, 60.0, &["s", "m"], 2);
    }
    scaled(us, 1_000.0, &["us", "ms"], 2)
}

/// A time in nanoseconds, in the format of [`format_time_us`].
pub fn format_time_ns(ns: u64) -> String {
    format_time_us(ns as f64 / 1_000.0)
}

/// Whole seconds or minutes: `30s`, `1m` from 51 s on.
pub fn format_time_s(seconds: f64) -> String {
    scaled(seconds, 60.0, &["s", "m"], 0)
}

/// A plain number: `999.00` is `1.00k`.
pub fn format_metric(number: f64) -> String {
    scaled(number, 1_000.0, &["", "k", "M", "G", "T"], 2)
}

/// Bytes in units of 1024, without the `B`: `76.67M`.
pub fn format_binary(bytes: f64) -> String {
    scaled(bytes, 1_024.0, &["", "K", "M", "G", "T"], 2)
}

/// A count with its noun: `1 request`, `2 requests`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn scaled(number: f64, step: f64, units: &[&str], decimals: usize) -> String {
    let mut amount = number;
    let mut at = 0;
    while at + 1 < units.len() && amount >= step * NEXT_UNIT_FROM {
        amount /= step;
        at += 1;
    }
    format!("{amount:.decimals$}{}", units[at])
}

fn scan(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, unit) = split(text);
    if digits.contains('.') {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor(unit, units)?)
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

fn factor(unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    let known = units.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    Some(known.1)
}

#[cfg(test)]
mod tests;
