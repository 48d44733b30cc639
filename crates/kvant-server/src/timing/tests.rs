use super::*;

/// A request whose phases take 1 ms, 0 ms, 3 ms, 40 ms and 6 ms.
fn trace(operation: Operation) -> Trace {
    Trace {
        operation,
        stamps: Stamps {
            arrival_ns: 1_000_000_000,
            parsed_ns: 1_001_000_000,
            queued_ns: 1_001_000_000,
            started_ns: 1_004_000_000,
            done_ns: 1_044_000_000,
            written_ns: 1_050_000_000,
        },
        ..Trace::default()
    }
}

fn recorded() -> Vec<Arc<Timings>> {
    let timings: Vec<Arc<Timings>> = (0..2).map(|_| Arc::default()).collect();
    for selector in &timings {
        for _ in 0..50 {
            selector.record(&trace(Operation::Get));
        }
    }
    timings[1].record(&trace(Operation::Put));
    timings
}

#[test]
fn statistics_have_each_phase_of_what_occurred() {
    let latency = latency_json(&recorded());
    let operations: Vec<&String> = latency.as_object().unwrap().keys().collect();
    assert_eq!(operations, ["get", "put"]);
    assert_eq!(latency["put"]["total"]["count"], 1);
    let get = &latency["get"];
    for (phase, us) in [
        ("selector", 1_000.0),
        ("body", 0.0),
        ("queue", 3_000.0),
        ("storage", 40_000.0),
        ("answer", 6_000.0),
        ("total", 50_000.0),
    ] {
        assert_eq!(get[phase]["count"], 100, "{phase}");
        for figure in ["mean_us", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"] {
            // No percentile is above the maximum, which is exact.
            assert_eq!(get[phase][figure], us, "{phase} {figure}");
        }
    }
    assert_eq!(latency_json(&[]), serde_json::json!({}));
}

#[test]
fn metrics_are_cumulative_buckets() {
    let mut text = String::new();
    write_metrics(&recorded(), &mut text);
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    let labels = "operation=\"get\",phase=\"storage\"";
    let bucket =
        |le: &str| value(&format!("kvant_request_phase_seconds_bucket{{{labels},le=\"{le}\"}}"));
    assert_eq!(
        ["0.00005", "0.025", "0.05", "10", "+Inf"].map(bucket),
        [0.0, 0.0, 100.0, 100.0, 100.0]
    );
    assert_eq!(value(&format!("kvant_request_phase_seconds_count{{{labels}}}")), 100.0);
    assert_eq!(value(&format!("kvant_request_phase_seconds_sum{{{labels}}}")), 4.0);
    assert!(!text.contains("operation=\"range\""));
    assert_eq!(text.matches("# TYPE kvant_request_phase_seconds histogram\n").count(), 1);
}

#[test]
fn wall_times_are_counted_from_now() {
    let clock = kvant_env::testing::MockClock::new(1_800_000_000_000);
    clock.advance(std::time::Duration::from_millis(5_250));
    let wall = WallTime::now(&clock);
    assert_eq!(wall.now_ns(), 5_250_000_000);
    assert_eq!(wall.at(5_250_000_000), "2027-01-15T08:00:05.250Z");
    assert_eq!(wall.at(0), "2027-01-15T08:00:00.000Z");
    assert_eq!(wall.at(6_250_000_000), "2027-01-15T08:00:06.250Z");
}
