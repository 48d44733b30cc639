//! Events are named by how much more frequent spikes are during them.

use super::*;

const MS: u64 = 1_000_000;

/// 200 columns of 100 ms, spikes at `spikes`, and an event over `spans` of columns.
fn line(spikes: &[u64], spans: &[(u64, u64)]) -> TimeLine {
    let column = |index: u64| LatencyColumn {
        start_ns: index * 100 * MS,
        end_ns: (index + 1) * 100 * MS,
        p99_ns: if spikes.contains(&index) { 9 * MS } else { MS / 2 },
        ..LatencyColumn::default()
    };
    let span = |(from, to): &(u64, u64)| (from * 100 * MS, to * 100 * MS - 1, String::new());
    TimeLine {
        columns: (0..200).map(column).collect(),
        lanes: vec![Lane { name: "flush".to_owned(), spans: spans.iter().map(span).collect() }],
        ..TimeLine::default()
    }
}

fn english(line: &TimeLine) -> Vec<String> {
    sentences(line, "kvant").into_iter().map(|text| text.en).collect()
}

#[test]
fn spikes_during_short_events_are_named_with_their_base_rate() {
    let line = line(&[20, 21, 80, 81, 150], &[(20, 22), (80, 82)]);
    assert_eq!(
        english(&line),
        [
            "kvant: 4 of 5 latency spikes fall into a flush: 100 % of the 4 intervals during it \
             are spikes, 2.50 % of all 200 (40.0 times as many).",
            "kvant: 1 of 5 latency spikes (p99 above 1.50 ms in 200 intervals) coincide with no \
             event beyond chance.",
        ]
    );
}

#[test]
fn an_event_over_most_of_the_time_explains_no_spike() {
    // All spikes fall into it, as nearly all columns do.
    let line = line(&[20, 60, 100, 150], &[(5, 95), (96, 195)]);
    assert_eq!(
        english(&line),
        ["kvant: 4 of 4 latency spikes (p99 above 1.50 ms in 200 intervals) coincide with no \
             event beyond chance."]
    );
}

#[test]
fn one_occurrence_of_an_event_is_no_evidence() {
    let line = line(&[20, 21, 22], &[(20, 23), (80, 82)]);
    assert!(english(&line)[0].contains("3 of 3 latency spikes (p99 above"), "{:?}", english(&line));
}

#[test]
fn chance_is_the_hypergeometric_tail() {
    // 1 of 10 columns is a spike: it is among 3 with a probability of 0.3.
    assert!((chance(1, 3, 1, 10) - 0.3).abs() < 1e-9);
    assert!((chance(0, 3, 4, 10) - 1.0).abs() < 1e-9);
    // All of 4 columns: C(5, 4) / C(10, 4).
    assert!((chance(4, 4, 5, 10) - 5.0 / 210.0).abs() < 1e-9);
}
