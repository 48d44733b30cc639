use super::*;
use crate::histogram::encoded::decode;
use crate::op::OpNames;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

const SECOND_NS: u64 = 1_000_000_000;

/// Two kinds over five seconds; the third second has no responses.
fn intervals(names: &OpNames) -> Vec<Interval> {
    let get = names.intern("GET /v0/entity");
    let odd = names.intern("put, 100 %\nß");
    (0..5)
        .map(|second| {
            let mut interval = Interval {
                start_ns: second * SECOND_NS,
                end_ns: (second + 1) * SECOND_NS,
                ..Interval::default()
            };
            for i in 0..if second == 2 { 0 } else { 300 } {
                let ns = 100_000 + i * i * 113 * (second + 1);
                interval.op_mut(get).response.record_ns(ns);
                interval.op_mut(get).service.record_ns(ns / 2);
                if second > 0 && i % 3 == 0 {
                    interval.op_mut(odd).response.record_ns(3 * ns);
                }
                interval.send_lag.record_ns(i * 300);
            }
            interval
        })
        .collect()
}

fn written(names: &OpNames, intervals: &[Interval]) -> Vec<u8> {
    let mut log = Vec::new();
    let mut writer = HlogWriter::new(&mut log);
    for (second, interval) in (1..).zip(intervals) {
        writer.write(interval, &names.all(), 1_700_000_000_000 + second * 1_000).unwrap();
    }
    log
}

/// A line of a log as HdrHistogram's library reads it, with its decoded tag.
struct Line {
    tag: String,
    begin_s: f64,
    histogram: Histogram,
}

fn read_back(log: &[u8]) -> Vec<Line> {
    let line = |entry: LogEntry<'_>| match entry {
        LogEntry::Interval(interval) => {
            let tag = interval.tag().unwrap();
            let histogram = decode(interval.encoded_histogram()).unwrap();
            assert!((interval.max() - histogram.as_hdr().max() as f64 / 1e6).abs() <= 0.0005);
            Some(Line {
                tag: percent_decode_str(&tag).decode_utf8().unwrap().into_owned(),
                begin_s: interval.start_timestamp().as_secs_f64(),
                histogram,
            })
        }
        LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
            assert_eq!(time.as_secs_f64(), 1_700_000_000.0);
            None
        }
    };
    IntervalLogIterator::new(log).filter_map(|entry| line(entry.unwrap())).collect()
}

#[test]
fn a_log_merges_to_the_histograms_of_the_run() {
    let names = OpNames::default();
    let intervals = intervals(&names);
    let mut total = Interval::default();
    intervals.iter().for_each(|interval| total.add(interval));
    let mut merged: BTreeMap<String, Histogram> = BTreeMap::new();
    for Line { tag, histogram, .. } in read_back(&written(&names, &intervals)) {
        merged.entry(tag).or_default().add(&histogram);
    }
    assert_eq!(
        merged.keys().collect::<Vec<_>>(),
        ["GET /v0/entity/response", "GET /v0/entity/service", "put, 100 %\nß/response", "send-lag"]
    );
    for (op, name) in total.ops.iter().zip(names.all()) {
        assert_eq!(merged[&format!("{name}/response")].as_hdr(), op.response.as_hdr());
    }
    assert_eq!(merged["GET /v0/entity/service"].as_hdr(), total.ops[0].service.as_hdr());
    assert_eq!(merged[SEND_LAG].as_hdr(), total.send_lag.as_hdr());
}

#[test]
fn the_header_has_version_times_and_units() {
    let names = OpNames::default();
    let log = String::from_utf8(written(&names, &intervals(&names))).unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("#[Histogram log format version 1.3]"));
    assert!(log.contains(
        "\n#[StartTime: 1700000000.000 (seconds since epoch), begin of the measured time]\n"
    ));
    assert!(log.contains("\n#[BaseTime: 1700000000.000 (seconds since epoch)]\n"));
    assert!(log.contains("nanoseconds"));
    let header =
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";
    assert!(log.lines().any(|line| line == header));
}

#[test]
fn a_line_has_its_maximum_in_milliseconds_and_a_tag_without_blanks() {
    let mut interval =
        Interval { start_ns: SECOND_NS, end_ns: 2 * SECOND_NS, ..Interval::default() };
    interval.connect.record_ns(12_000_000);
    let names = OpNames::default();
    let op = names.intern("GET a,b");
    interval.op_mut(op).service.record_ns(2_000_000);
    let log = String::from_utf8(written(&names, &[interval])).unwrap();
    let rows: Vec<&str> = log.lines().filter(|line| line.starts_with("Tag=")).collect();
    assert!(rows[0].starts_with("Tag=GET%20a%2Cb/service,1.000,1.000,2.00"), "{}", rows[0]);
    assert!(rows[1].starts_with("Tag=connect,1.000,1.000,12.00"), "{}", rows[1]);
}

#[test]
fn a_second_without_responses_is_a_line_without_values() {
    let names = OpNames::default();
    let log = read_back(&written(&names, &intervals(&names)));
    let get: Vec<&Line> = log.iter().filter(|line| line.tag == "GET /v0/entity/response").collect();
    let begins: Vec<f64> = get.iter().map(|line| line.begin_s).collect();
    assert_eq!(begins, [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert!(get[2].histogram.is_empty() && !get[3].histogram.is_empty());
    // The other kind has no line before its first value.
    assert_eq!(log.iter().filter(|line| line.tag.starts_with("put")).count(), 4);
}

#[test]
fn a_second_phase_follows_the_first() {
    let names = OpNames::default();
    let intervals = intervals(&names);
    let mut log = Vec::new();
    let mut writer = HlogWriter::new(&mut log);
    let begin_ms = 1_700_000_000_000;
    for (second, interval) in (1..).zip(&intervals) {
        writer.write(interval, &names.all(), begin_ms + second * 1_000).unwrap();
    }
    // The next phase begins after a warm-up of 2 s.
    for (second, interval) in (1..).zip(&intervals) {
        writer.write(interval, &names.all(), begin_ms + 7_000 + second * 1_000).unwrap();
    }
    // The wall clock is set back by a minute before the third.
    writer.write(&intervals[0], &names.all(), begin_ms - 60_000).unwrap();
    let log = read_back(&log);
    let lags = log.iter().filter(|line| line.tag == SEND_LAG);
    let begins: Vec<f64> = lags.map(|line| line.begin_s).collect();
    assert_eq!(begins, [0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
}
