mod schema;

use super::*;
use crate::assertion::Assertion;
use crate::config::{Arrival, Phase, Rate, StatusSet};
use crate::find_max::{Judgement, Purpose};
use crate::histogram::encoded::decode;
use crate::machine::MachineUse;
use crate::outcome::{Outcome, Second, ThreadOutcome};
use crate::record::Interval;
use crate::target::{Address, Target};
use crate::verdict::{Bound, Share, Verdict};
use schema::Schema;
use serde_json::Value;
use std::time::Duration;

const SCHEMA: &str = include_str!("../../../../../docs/load-result.schema.json");

fn config() -> LoadConfig {
    LoadConfig {
        targets: vec![Target {
            url: "http://localhost:8080/v0/status".to_owned(),
            is_tls: false,
            host: "localhost".to_owned(),
            port: Some(8080),
            authority: "localhost:8080".to_owned(),
            path: "/v0/status".to_owned(),
            addresses: vec![Address::Tcp(([127, 0, 0, 1], 8080).into())],
        }],
        thread_count: 2,
        connection_count: 64,
        timeout: Duration::from_secs(2),
        arrival: Arrival::Poisson,
        seed: 7,
        ok_statuses: StatusSet::new([404, 410]),
        batch_latency: false,
        wrk2_exact: false,
        spin: Duration::from_micros(50),
        interval: Duration::from_secs(1),
        ca_pem: None,
    }
}

fn machine() -> MachineUse {
    MachineUse {
        time_ns: 1_000_000_000,
        cpu_count: 2,
        generator_part: 0.1,
        server_part: Some(0.2),
        others_part: 0.3,
        others_include_server: false,
        stolen_part: 0.01,
        pressure_part: Some(0.05),
    }
}

fn outcome() -> Outcome {
    let names = crate::OpNames::default();
    let mut total = Interval {
        planned: 1_010,
        sent: 1_005,
        completed: 1_000,
        read_bytes: 123_456,
        cpu_ns: 50_000_000,
        source_ns: 9_000_000,
        ..Interval::default()
    };
    for i in 0..1_000_u64 {
        let op = names.intern(if i % 10 == 0 { "PUT /v0/entity" } else { "get" });
        let record = total.op_mut(op);
        record.response.record_ns(i * i * 17);
        record.service.record_ns(i * 900);
        record.count_status(if i % 7 == 0 { 404 } else { 200 });
        if i % 20 == 0 {
            record.service_failed.get_or_insert_default().record_ns(i * 900);
        }
        total.send_lag.record_ns(i * 11);
    }
    total.connect.record_many_ns(80_000, 64);
    total.errors.status = 3;
    total.errors.timeout = 2;
    let mut unanswered = Histogram::new();
    unanswered.record_many_ns(1_500_000_000, 10);
    let second = Second {
        start_ns: 0,
        end_ns: 1_000_000_000,
        planned: 505,
        completed: 500,
        backlog: 2,
        errors: 1,
        p50_ns: 10,
        p99_ns: 20,
        max_ns: 30,
        machine: Some(machine()),
    };
    let thread = ThreadOutcome {
        rates: vec![500.0, 499.5],
        sample_ns: 100_000_000,
        calibration_mean_ns: Some(1_870_000.0),
        cpu_ns: 25_000_000,
        completed: 500,
    };
    total.name_ops(names.all());
    Outcome {
        phase: Phase {
            rate: Rate::Ramp { from: 0.0, to: 1_010.0 },
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(2),
            request_count_max: Some(5_000),
        },
        start_wall_ms: 1_700_000_000_123,
        measure_start_ns: Some(5_000_000_000),
        measured_ns: 2_000_000_000,
        total,
        seconds: vec![second],
        backlog: 5,
        in_flight: 5,
        unanswered,
        threads: vec![thread],
        machine: Some(machine()),
        is_cut_short: true,
    }
}

fn found() -> FindMax {
    let point = Point {
        purpose: Purpose::Step,
        rate: 20_000.0,
        achieved: 19_000.5,
        p50_ns: 1,
        p99_ns: 2,
        p999_ns: 3,
        max_ns: 4,
        send_lag_p99_ns: 6,
        judgement: Judgement { reasons: vec!["The backlog grew.".to_owned()], is_close: false },
        generator: Some("It was late.".to_owned()),
        disturbance: Some("others took 30 %".to_owned()),
    };
    FindMax {
        saturation_rate: 30_000.0,
        rate: Some(12_345.5),
        is_confirmed: true,
        limit: Some(Limit {
            rate: 20_000.0,
            reasons: vec!["The backlog grew.".to_owned()],
            generator: None,
        }),
        points: vec![point],
        at_80: None,
        is_cut_short: false,
    }
}

/// A file with all optional parts.
fn full() -> ResultFile {
    let command = vec!["kvant".to_owned(), "load".to_owned()];
    let mut file =
        ResultFile::new(command, HostFacts::of_this_machine(), ConfigFacts::of(&config(), "GET"));
    file.host.cpu_model.get_or_insert_with(|| "unknown".to_owned());
    let verdict = Verdict {
        bound: Bound::Server,
        is_valid: true,
        late_percents: Vec::new(),
        shares: vec![Share {
            percent: 99.0,
            response_ns: 24_100_000,
            generator_ns: 3_800_000,
            is_server: false,
        }],
        disturbance: Some("the hypervisor took 12 % of the CPU time".to_owned()),
        headline: "the backlog grew".to_owned(),
        sentences: vec!["Ask for less.".to_owned()],
    };
    file.phases.push(PhaseResult::of(&outcome(), "step", Some(&verdict)));
    file.find_max = Some(FindMaxFacts::of(&found(), &["p99<5ms".to_owned()]));
    let mut checked = Assertion::parse("p99<5ms").unwrap().check(&outcome(), None);
    file.assertions.push(AssertionFacts { checked: checked.clone(), phase: 0 });
    checked.undecided = Some("no request was answered".to_owned());
    file.assertions.push(AssertionFacts { checked, phase: 0 });
    file
}

/// A file without any optional part.
fn bare() -> ResultFile {
    let host = HostFacts { cpu_count: 1, ..HostFacts::default() };
    let mut file = ResultFile::new(Vec::new(), host, ConfigFacts::of(&config(), "GET"));
    let mut nothing = outcome();
    nothing.phase.rate = Rate::Closed;
    nothing.phase.request_count_max = None;
    nothing.total = Interval::default();
    nothing.unanswered = Histogram::new();
    nothing.measured_ns = 0;
    nothing.seconds.clear();
    nothing.threads[0].calibration_mean_ns = None;
    file.phases.push(PhaseResult::of(&nothing, "", None));
    file
}

#[test]
fn files_survive_a_round_trip() {
    for file in [full(), bare()] {
        let read = ResultFile::parse(&file.to_json(), Path::new("a.json")).unwrap();
        assert!(read == file, "{} {}", file.to_json(), read.to_json());
    }
}

#[test]
fn an_outcome_survives_with_its_histograms() {
    let before = outcome();
    let text = serde_json::to_string(&PhaseResult::of(&before, "", None)).unwrap();
    let after = serde_json::from_str::<PhaseResult>(&text).unwrap().outcome;
    assert_eq!(after.response().as_hdr(), before.response().as_hdr());
    assert_eq!(
        after.response_with_unanswered().percentile_ns(99.9),
        before.response_with_unanswered().percentile_ns(99.9)
    );
    assert_eq!(after.total.ops[0].statuses, before.total.ops[0].statuses);
    assert_eq!(serde_json::to_string(&PhaseResult::of(&after, "", None)).unwrap(), text);
}

#[test]
fn percentiles_of_a_file_equal_those_of_its_histograms() {
    for file in [full(), bare()] {
        let value: Value = serde_json::from_str(&file.to_json()).unwrap();
        for place in ["/phases/0/response", "/phases/0/ops/1/service", "/phases/0/unanswered"] {
            let Some(written) = value.pointer(place) else { continue };
            let histogram = decode(written["histogram"].as_str().unwrap()).unwrap();
            assert_eq!(&serde_json::to_value(&histogram).unwrap(), written);
        }
    }
}

#[test]
fn files_match_the_schema() {
    let schema = Schema::parse(SCHEMA);
    for file in [full(), bare()] {
        let value: Value = serde_json::from_str(&file.to_json()).unwrap();
        let problems = schema.problems_of(&value);
        assert!(problems.is_empty(), "{problems:#?}");
    }
}

#[test]
fn the_schema_describes_only_written_properties() {
    let schema = Schema::parse(SCHEMA);
    let value: Value = serde_json::from_str(&full().to_json()).unwrap();
    let unmet = schema.properties_not_in(&value);
    assert!(unmet.is_empty(), "never written: {unmet:#?}");
    let silent = schema.properties_without_description();
    assert!(silent.is_empty(), "without a description: {silent:#?}");
}

#[test]
fn the_schema_rejects_bad_values() {
    let schema = Schema::parse(SCHEMA);
    let good: Value = serde_json::from_str(&full().to_json()).unwrap();
    let cases: [(&str, Value); 6] = [
        ("/version", Value::from("1")),
        ("/format", Value::from("other")),
        ("/phases/0/response/p99_ns", Value::from(-1)),
        ("/phases/0/rate/kind", Value::from("wild")),
        ("/phases", Value::from(Vec::<Value>::new())),
        ("/phases/0/errors", Value::Null),
    ];
    for (place, wrong) in cases {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap() = wrong;
        assert_eq!(schema.problems_of(&bad).len(), 1, "{place}");
    }
    let mut bad = good.clone();
    bad["phases"][0].as_object_mut().unwrap().remove("planned");
    bad["surprise"] = Value::from(1);
    assert_eq!(schema.problems_of(&bad).len(), 2);
}

#[test]
fn other_formats_and_later_versions_are_rejected() {
    let refused = |text: &str| ResultFile::parse(text, Path::new("a.json")).unwrap_err();
    let message = refused("{}").to_string();
    assert!(message.contains("not a result") && message.contains("a.json"), "{message}");
    assert!(refused(r#"{"format": "k6", "version": 1}"#).to_string().contains("k6"));
    let later = refused(r#"{"format": "kvant-load-result", "version": 2, "new": true}"#);
    assert_eq!(later.kind(), ErrorKind::Unsupported);
    let text = full().to_json();
    assert_eq!(refused(&text[..text.len() / 2]).kind(), ErrorKind::Invalid);
}

#[test]
fn a_malformed_histogram_names_its_file() {
    let mut value: Value = serde_json::from_str(&full().to_json()).unwrap();
    let text = &mut value["phases"][0]["ops"][0]["service"]["histogram"];
    *text = Value::from(&text.as_str().unwrap()[..40]);
    let error = ResultFile::parse(&value.to_string(), Path::new("b.json")).unwrap_err().to_string();
    assert!(error.contains("a histogram") && error.contains("in b.json"), "{error}");
}

#[test]
fn unknown_fields_are_ignored() {
    let mut value: Value = serde_json::from_str(&full().to_json()).unwrap();
    value["phases"][0]["added_later"] = Value::from(1);
    assert!(ResultFile::parse(&value.to_string(), Path::new("a.json")).unwrap() == full());
}
