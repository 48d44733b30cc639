use super::*;
use crate::outcome::ThreadOutcome;
use crate::record::Errors;
use crate::report::testing::{Classic, Lcg, outcome};

fn threads(rates: &[f64], thread_count: usize) -> Vec<ThreadOutcome> {
    let per_thread = rates.len().div_ceil(thread_count);
    rates
        .chunks(per_thread)
        .map(|rates| ThreadOutcome {
            rates: rates.to_vec(),
            sample_ns: 10_000_000,
            ..ThreadOutcome::default()
        })
        .collect()
}

/// 200,000 responses within milliseconds, two threads.
fn with_latency() -> String {
    let mut numbers = Lcg(1);
    let mut response = Histogram::new();
    for _ in 0..200_000 {
        let number = numbers.next();
        let mut us = 60 + number % 600;
        us *= if number.is_multiple_of(97) { 9 } else { 1 };
        us *= if number.is_multiple_of(9_973) { 11 } else { 1 };
        response.record_ns(us * 1_000);
    }
    let rates: Vec<f64> = (0..40).map(|_| (9_500 + numbers.next() % 1_500) as f64).collect();
    let mut outcome = outcome(10.0, response, Histogram::new());
    outcome.total.completed = 200_000;
    outcome.total.read_bytes = 13_421_772;
    outcome.threads = threads(&rates, 2);
    let head = Header {
        url: "http://localhost:8080",
        duration: outcome.phase.duration,
        thread_count: 2,
        connection_count: 64,
    };
    header(&head) + &body(&outcome, Parts { latency: true, ..Parts::default() })
}

/// An overload: minutes of latency, errors of all kinds, four threads, both blocks.
fn with_uncorrected_and_errors() -> String {
    let mut numbers = Lcg(1);
    let (mut response, mut service) = (Histogram::new(), Histogram::new());
    for index in 1..=50_000 {
        let number = numbers.next();
        response.record_ns((1_400 * index + number % 1_000) * 1_000);
        service.record_ns((900 + number % 30_000) * 1_000);
    }
    // Alone in their buckets, so that a coarser histogram has as many rows.
    response.record_ns(75_000_000_000);
    service.record_ns(41_000_000);
    let rates: Vec<f64> = (0..120).map(|_| (100 + numbers.next() % 200) as f64).collect();
    let mut outcome = outcome(120.004, response, service);
    outcome.total.completed = 50_001;
    outcome.total.read_bytes = 52_428_800_000;
    outcome.total.errors = Errors { connect: 8, read: 12, write: 3, timeout: 232, status: 1_070 };
    outcome.threads = threads(&rates, 4);
    let head = Header {
        url: "http://localhost:8080/v0/status",
        duration: Duration::from_secs(120),
        thread_count: 4,
        connection_count: 1_024,
    };
    header(&head) + &body(&outcome, Parts { uncorrected: true, ..Parts::default() })
}

/// Neither `-L` nor `-U`; unexpected statuses and no other errors.
fn without_options_outcome() -> Outcome {
    let mut numbers = Lcg(1);
    let mut response = Histogram::new();
    for _ in 0..3_000 {
        response.record_ns((200_000 + numbers.next() % 700_000) * 1_000);
    }
    let mut outcome = outcome(55.0, response, Histogram::new());
    outcome.total.completed = 3_000;
    outcome.total.read_bytes = 900;
    outcome.total.errors.status = 28;
    outcome.threads = threads(&[1_200_000.0, 1_100_000.0, 1_050_000.0], 1);
    outcome
}

fn without_options() -> String {
    let outcome = without_options_outcome();
    let head = Header {
        url: "http://localhost:8080/v0/entity?id=1",
        duration: outcome.phase.duration,
        thread_count: 1,
        connection_count: 1,
    };
    header(&head) + &body(&outcome, Parts::default())
}

/// No connection, no response.
fn with_nothing(exact: bool) -> String {
    let mut outcome = outcome(1.0, Histogram::new(), Histogram::new());
    outcome.total.errors.connect = 5;
    outcome.threads = vec![ThreadOutcome::default(); 3];
    let head = Header {
        url: "http://localhost:8080",
        duration: outcome.phase.duration,
        thread_count: 3,
        connection_count: 3,
    };
    header(&head) + &body(&outcome, Parts { latency: true, exact, ..Parts::default() })
}

/// The example with calibration lines, whose figures are not those of the histograms.
fn exact() -> String {
    let mut outcome = without_options_outcome();
    let calibrations = [(2_966_648e3, 11_665), (1_870e3, 10), (3_406_773e3, 11_313), (410e3, 10)];
    outcome.threads = threads(&outcome.threads[0].rates, 3);
    outcome.threads.push(ThreadOutcome::default());
    for (thread, (mean_ns, sample_ms)) in outcome.threads.iter_mut().zip(calibrations) {
        thread.calibration_mean_ns = Some(mean_ns);
        thread.sample_ns = sample_ms * 1_000_000;
    }
    let head = Header {
        url: "http://localhost:8080/v0/entity?id=1",
        duration: outcome.phase.duration,
        thread_count: 4,
        connection_count: 64,
    };
    header(&head) + &body(&outcome, Parts { exact: true, ..Parts::default() })
}

/// Replaces digits by `9` and trailing spaces by `~`; the result is the layout.
fn masked(text: &str) -> String {
    let mask = |line: &str| {
        let kept = line.trim_end_matches(' ');
        let digits = kept.replace(|c: char| c.is_ascii_digit(), "9");
        digits + &"~".repeat(line.len() - kept.len()) + "\n"
    };
    text.lines().map(mask).collect()
}

fn assert_layout(name: &str, text: &str, golden: &str) {
    assert!(text.ends_with('\n'), "{name}: the last line ends");
    let masked = masked(text);
    for (index, (found, expected)) in masked.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, expected, "{name}, line {}", index + 1);
    }
    assert_eq!(masked.lines().count(), golden.lines().count(), "{name}: lines");
}

macro_rules! golden {
    ($name:literal) => {
        include_str!(concat!("../../../../../testdata/golden/load/", $name))
    };
}

#[test]
fn the_layout_is_wrk2s_to_the_column() {
    assert_layout("plain", &without_options(), golden!("plain.txt"));
    assert_layout("latency", &with_latency(), golden!("latency.txt"));
    assert_layout("uncorrected", &with_uncorrected_and_errors(), golden!("uncorrected-errors.txt"));
    assert_layout("exact", &exact(), golden!("exact.txt"));
    assert_layout("nothing", &with_nothing(true), golden!("exact-nothing.txt"));
}

#[test]
fn a_shifted_column_is_detected() {
    let shifted = without_options().replacen("    Latency   ", "    Latency  ", 1);
    assert_ne!(masked(&shifted), golden!("plain.txt"));
    assert_eq!(masked("a 12.50s \n1\n"), "a 99.99s~\n9\n");
}

#[test]
fn figures_are_those_of_wrk2_for_the_same_latencies() {
    // The expected figures come from wrk2's functions.
    let text = with_latency();
    let found = Classic::parse(&text);
    let close = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.002, "{found}, not {expected}")
    };
    close(found.latency[0], 390.34e-6);
    close(found.latency[1], 378.54e-6);
    close(found.latency[2], 7.25e-3);
    close(found.latency[3], 98.99);
    close(found.rate[0], 10_230.0);
    close(found.rate[1], 453.47);
    close(found.rate[2], 11_000.0);
    let expected = [363e-6, 515e-6, 606e-6, 819e-6, 5.44e-3, 5.91e-3, 6.92e-3, 7.25e-3];
    assert_eq!(found.distribution.len(), expected.len());
    for ((_, value), expected) in found.distribution.iter().zip(expected) {
        close(*value, expected);
    }
}

/// `-nan` would break parsers: only exact mode prints it.
#[test]
fn output_without_responses_is_readable() {
    let text = with_nothing(false);
    assert!(!text.to_lowercase().contains("nan"), "{text}");
    let found = Classic::parse(&text);
    assert_eq!(found.latency, [0.0; 4]);
    assert_eq!(found.rate, [0.0; 4]);
    assert_eq!(found.spectrum.len(), 1);
    assert_eq!(found.socket_errors, Some([5, 0, 0, 0]));
}

#[test]
fn parsers_of_wrk2_find_every_number() {
    let found = Classic::parse(&with_uncorrected_and_errors());
    let about = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.01, "{found}, not {expected}")
    };
    about(found.latency[0], 35.0);
    about(found.latency[2], 75.0);
    about(found.rate[0], 200.0);
    assert_eq!(found.distribution.len(), 8);
    assert_eq!(found.distribution[0].0, 50.0);
    about(found.distribution[0].1, 35.0);
    about(found.uncorrected[0].1, 0.015_9);
    about(found.uncorrected[7].1, 0.041);
    assert_eq!(found.requests, 50_001);
    about(found.seconds, 120.0);
    about(found.bytes, 52_428_800_000.0);
    assert_eq!(found.socket_errors, Some([8, 12, 3, 232]));
    assert_eq!(found.status_errors, 1_070);
    about(found.requests_per_second, 416.67);
    about(found.bytes_per_second, 436_892_000.0);
}

#[test]
fn the_plotter_of_hdrhistogram_finds_four_columns() {
    let found = Classic::parse(&with_latency());
    let rows = &found.spectrum;
    assert!(rows.len() > 80, "{}", rows.len());
    for [value_ms, quantile, count, inverse] in rows {
        assert!((0.06..=7.3).contains(value_ms) && (0.0..=1.0).contains(quantile));
        assert!((1.0..=200_000.0).contains(count));
        assert!(*inverse >= 1.0);
    }
    assert!(rows.is_sorted_by(|a, b| a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2]));
    assert!(rows.last().unwrap()[3].is_infinite());
}
