//! Outcomes for tests of reports, and a parser of wrk2's text as in users' scripts.

use crate::config::{Phase, Rate};
use crate::histogram::Histogram;
use crate::outcome::{Outcome, ThreadOutcome};
use crate::record::{Interval, OpRecord};
use std::time::Duration;

/// Reproducible numbers below 2^31; the golden files were made with the same.
pub(crate) struct Lcg(pub(crate) u64);

impl Lcg {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// A phase of `seconds` at 1,000 requests per second with these latencies, one kind of requests,
/// and nothing else.
pub(crate) fn outcome(seconds: f64, response: Histogram, service: Histogram) -> Outcome {
    let record = OpRecord { name: "GET".to_string(), response, service, ..OpRecord::default() };
    Outcome {
        phase: Phase {
            rate: Rate::Constant(1_000.0),
            duration: Duration::from_secs_f64(seconds),
            ..Phase::default()
        },
        measured_ns: (seconds * 1e9) as u64,
        total: Interval { ops: vec![record], ..Interval::default() },
        ..Outcome::default()
    }
}

/// A phase of 10 s at `rate` that kept its plan, with a median of 1 ms, a p99 of 5 ms, and one
/// thread at 30 % CPU.
pub(crate) fn calm(rate: u64) -> Outcome {
    let count = rate * 10;
    let mut response = Histogram::new();
    let mut service = Histogram::new();
    let mut send_lag = Histogram::new();
    for index in 0..count {
        let us = if index % 100 < 98 { 500 + 10 * (index % 100) } else { 5_000 };
        response.record_ns(us * 1_000 + 20_000);
        service.record_ns(us * 1_000);
        send_lag.record_ns(4_000 + 100 * (index % 100));
    }
    let mut outcome = outcome(10.0, response, service);
    outcome.phase.rate = Rate::Constant(rate as f64);
    outcome.total.ops[0].statuses = vec![(200, count)];
    outcome.total.send_lag = send_lag;
    outcome.total.connect.record_many_ns(80_000, 8);
    outcome.total.planned = count;
    outcome.total.sent = count;
    outcome.total.completed = count;
    outcome.total.read_bytes = count * 67;
    outcome.total.cpu_ns = 3_000_000_000;
    outcome.threads =
        vec![ThreadOutcome { cpu_ns: 3_000_000_000, completed: count, ..ThreadOutcome::default() }];
    outcome
}

/// As [`calm`], but with responses to only `percent` of 100 requests, and seconds of latency.
pub(crate) fn overloaded(rate: u64, percent: u64) -> Outcome {
    let count = rate * 10;
    let completed = count * percent / 100;
    let mut response = Histogram::new();
    for index in 1..=completed {
        response.record_ns(index * 10_000_000_000 * (100 - percent) / 100 / completed);
    }
    let mut outcome = Outcome { phase: calm(rate).phase, ..calm(rate) };
    outcome.total.ops[0].response = response;
    outcome.total.ops[0].statuses = vec![(200, completed)];
    outcome.total.completed = completed;
    outcome.in_flight = 64;
    outcome.backlog = count - completed - 64;
    outcome.total.sent = completed + 64;
    for index in 0..count - completed {
        outcome
            .unanswered
            .record_ns(index * 10_000_000_000 * (100 - percent) / 100 / (count - completed));
    }
    outcome
}

/// The figures of wrk2's text, parsed by the position of words, with units resolved.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Classic {
    /// Seconds three times, percent.
    pub(crate) latency: [f64; 4],
    pub(crate) rate: [f64; 4],
    /// Percent, seconds.
    pub(crate) distribution: Vec<(f64, f64)>,
    pub(crate) uncorrected: Vec<(f64, f64)>,
    /// Lines of four numbers without `#`, as HdrHistogram's plotter reads them.
    pub(crate) spectrum: Vec<[f64; 4]>,
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
    pub(crate) socket_errors: Option<[u64; 4]>,
    pub(crate) status_errors: u64,
    pub(crate) requests_per_second: f64,
    pub(crate) bytes_per_second: f64,
}

impl Classic {
    pub(crate) fn parse(text: &str) -> Classic {
        let mut classic = Classic::default();
        let mut is_uncorrected = false;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["Latency", "Distribution", ..] => is_uncorrected = line.contains("Uncorrected"),
                ["Latency", a, b, c, d] => {
                    classic.latency = [number(a), number(b), number(c), number(d)]
                }
                ["Req/Sec", a, b, c, d] => {
                    classic.rate = [number(a), number(b), number(c), number(d)]
                }
                [count, "requests", "in", time, bytes, "read"] => {
                    classic.requests = count.parse().unwrap();
                    classic.seconds = number(time.trim_end_matches(','));
                    classic.bytes = number(bytes);
                }
                ["Socket", "errors:", ref rest @ ..] => {
                    let counts: Vec<u64> = rest
                        .iter()
                        .filter_map(|word| word.trim_end_matches(',').parse().ok())
                        .collect();
                    classic.socket_errors = Some(counts.try_into().unwrap());
                }
                ["Non-2xx", "or", "3xx", "responses:", count] => {
                    classic.status_errors = count.parse().unwrap()
                }
                ["Requests/sec:", rate] => classic.requests_per_second = rate.parse().unwrap(),
                ["Transfer/sec:", bytes] => classic.bytes_per_second = number(bytes),
                [percent, value] if percent.ends_with('%') => {
                    let rows = if is_uncorrected {
                        &mut classic.uncorrected
                    } else {
                        &mut classic.distribution
                    };
                    rows.push((number(percent), number(value)));
                }
                [a, b, c, d] if !line.contains('#') => {
                    let columns: Option<Vec<f64>> =
                        [a, b, c, d].iter().map(|word| word.parse().ok()).collect();
                    classic
                        .spectrum
                        .extend(columns.map(|columns| <[f64; 4]>::try_from(columns).unwrap()));
                }
                _ => {}
            }
        }
        classic
    }
}

/// A figure with a unit: seconds, bytes, or plain.
fn number(text: &str) -> f64 {
    let units = [
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("KB", 1024.0),
        ("MB", 1_048_576.0),
        ("GB", 1_073_741_824.0),
        ("B", 1.0),
        ("k", 1e3),
        ("M", 1e6),
        ("m", 60.0),
        ("%", 1.0),
        ("", 1.0),
    ];
    let (digits, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor))).unwrap();
    digits.parse::<f64>().unwrap_or_else(|_| panic!("no number: {text}")) * factor
}
