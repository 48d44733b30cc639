use super::*;
use crate::http::Operation;
use crate::store::ReadTrace;
use crate::timing::KeyStart;
use http::StatusCode;
use kvant_base::events::{EventKind, Events, Field};
use kvant_env::testing::MockClock;
use serde_json::{Value, json};
use std::time::Duration;

/// Ten seconds after its start.
fn wall() -> WallTime {
    let clock = MockClock::new(1_800_000_000_000);
    clock.advance(Duration::from_secs(10));
    WallTime::now(&clock)
}

/// A read that arrived after 5 s and took 50 ms.
fn trace(key: &[u8]) -> Trace {
    Trace {
        operation: Operation::Get,
        status: StatusCode::NOT_FOUND,
        stamps: Stamps {
            arrival_ns: 5_000_000_000,
            parsed_ns: 5_001_000_500,
            queued_ns: 5_001_000_500,
            started_ns: 5_004_000_000,
            done_ns: 5_044_000_000,
            written_ns: 5_050_000_000,
        },
        key: KeyStart::of(key),
        read: ReadTrace {
            table_count: 3,
            block_count: 2,
            block_read_count: 1,
            block_read_bytes: 4096,
            block_read_ns: 38_000_000,
        },
        stall: Some("l0_tables"),
        remote: RemoteCourse::default(),
        received_bytes: 70,
        sent_bytes: 250,
    }
}

fn shown(slowest: &[Trace], events: &[Arc<Event>]) -> Value {
    serde_json::from_slice(&rows(slowest, events, &wall(), None).unwrap()).unwrap()
}

fn key_members(key: &[u8]) -> (Value, Value, Value) {
    let row = &shown(&[trace(key)], &[])[0];
    (row["key"].clone(), row["key_base64"].clone(), row["key_bytes"].clone())
}

#[test]
fn a_row_has_every_member() {
    let events = Events::new(16);
    let flush = events.begin(EventKind::Flush, 4_000_000_000, Vec::new());
    events.end(
        EventKind::Flush,
        flush,
        4_000_000_000,
        5_000_500_000,
        vec![("bytes", Field::Number(9))],
    );
    events.begin(EventKind::Compaction, 5_049_000_000, Vec::new());
    events.add_complete(EventKind::Fsync, 4_000_000_000, 4_900_000_000, Vec::new());
    events.add_complete(EventKind::Fsync, 5_060_000_000, 5_070_000_000, Vec::new());
    assert_eq!(
        shown(&[trace(b"user-17")], &events.overlapping(0, u64::MAX)),
        json!([{
            "operation": "get",
            "status": 404,
            "key": "user-17",
            "key_bytes": 7,
            "started_at": "2027-01-15T08:00:05.000Z",
            "total_us": 50_000.0,
            "phases": {
                "selector_us": 1_000.5,
                "body_us": 0.0,
                "queue_us": 2_999.5,
                "storage_us": 40_000.0,
                "answer_us": 6_000.0,
            },
            "tables": 3,
            "blocks": 2,
            "block_reads": 1,
            "block_read_bytes": 4096,
            "block_read_us": 38000.0,
            "received_bytes": 70,
            "sent_bytes": 250,
            "stall": "l0_tables",
            "events": [
                { "kind": "flush", "start_us": -1_000_000.0, "duration_us": 1_000_500.0, "fields": { "bytes": 9 } },
                { "kind": "compaction", "start_us": 49_000.0, "duration_us": null, "fields": {} },
            ],
            "events_omitted": 0,
        }])
    );
    assert_eq!(shown(&[], &[]), json!([]));
}

#[test]
fn keys_are_text_or_base64_and_cut_between_characters() {
    let null = Value::Null;
    assert_eq!(key_members(b""), (null.clone(), null.clone(), 0.into()));
    assert_eq!(key_members(b"\xff\x00"), (null.clone(), "/wA=".into(), 2.into()));
    let long = "ключ-".repeat(10);
    let (key, base64, bytes) = key_members(long.as_bytes());
    assert_eq!((base64, bytes), (null.clone(), 90.into()));
    assert_eq!(key, "ключ-ключ-ключ-к");
    // A key that ends within a character is no text.
    let (key, base64, _) = key_members(&"ж".as_bytes()[..1]);
    assert_eq!((key, base64), (null, "0A==".into()));
}

#[test]
fn of_many_events_those_that_overlap_longest_are_shown() {
    let events = Events::new(1000);
    for index in 0..100 {
        // The later ones last longer.
        let start_ns = 5_001_000_000 + index * 1_000;
        events.add_complete(EventKind::Fsync, start_ns, start_ns + 1_000 * (index + 1), Vec::new());
    }
    let row = &shown(&[trace(b"k")], &events.overlapping(0, u64::MAX))[0];
    let durations: Vec<f64> = row["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["duration_us"].as_f64().unwrap())
        .collect();
    let expected: Vec<f64> = (69..=100).map(f64::from).collect();
    assert_eq!((durations, &row["events_omitted"]), (expected, &68.into()));
}
