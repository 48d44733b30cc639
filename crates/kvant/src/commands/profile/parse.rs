//! Parsers of option values. Errors are sentences that the option's name precedes.

use kvant_load::units;
use kvant_profiler::recording::Kind;
use kvant_profiler::render::Format;
use std::time::Duration;

const DURATION_MIN: Duration = Duration::from_millis(100);
const DURATION_MAX: Duration = Duration::from_secs(3600);

/// Where a server listens by default.
pub(super) const URL: &str = "http://127.0.0.1:8080";
pub(super) const ENGINES: [&str; 2] = ["timer", "perf"];
pub(super) const KINDS: [&str; 8] =
    ["cpu", "alloc", "contention", "idle", "backpressure", "io", "scheduler", "holder"];

pub(super) fn server(url: &str) -> Result<String, String> {
    let form = || format!("`{url}` is not the address of a server, such as {URL}");
    if url.starts_with("https://") {
        return Err(format!(
            "`{url}`: profiles are asked for without encryption: use http:// on the server's machine"
        ));
    }
    let address = url.strip_prefix("http://").unwrap_or(url);
    let address = address.strip_suffix('/').unwrap_or(address);
    let is_address = !address.is_empty() && !address.contains(['/', '?', '#', '@', ' ']);
    // Colons of an IPv6 address are within brackets.
    let after_host = address.rfind(']').map_or(address, |end| &address[end + 1..]);
    match after_host.split_once(':') {
        _ if !is_address => Err(form()),
        None => Ok(format!("{address}:80")),
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(address.to_owned()),
        Some(_) => Err(form()),
    }
}

pub(super) fn events(text: &str) -> Result<Vec<String>, String> {
    let event = |word: &str| match word {
        "cpu" | "alloc" | "lock" => Ok(word.to_owned()),
        _ => Err(format!("`{word}` is none of cpu, alloc and lock")),
    };
    text.split(',').map(event).collect()
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    match units::parse_time(text)? {
        time if (DURATION_MIN..=DURATION_MAX).contains(&time) => Ok(time),
        _ => Err(format!("`{text}` is not between 100ms and 60m")),
    }
}

pub(super) fn rate_hz(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(rate_hz @ 1..=1000) => Ok(rate_hz),
        _ => Err(format!("`{text}` is not a whole number from 1 to 1000")),
    }
}

pub(super) fn engine(text: &str) -> Result<String, String> {
    match ENGINES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is neither timer nor perf")),
    }
}

pub(super) fn kind(text: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| format!("`{text}` is none of {}", KINDS.join(", ")))
}

/// A format by its name. Another option gives the kind of collapsed stacks.
pub(super) fn format(text: &str) -> Result<Format, String> {
    Format::parse(text, Kind::Cpu)
        .ok_or_else(|| format!("`{text}` is none of html, kprof, pprof and collapsed"))
}
