//! Prints the files of an artificial run as one JSON object: `hlog`, `result` (its JSON), `hgrm`
//! (of all response times). `cargo xtask hlog-check` reads them with other programs.
//!
//! The run has two phases, kinds with awkward names, a second without responses, values from 0 to
//! beyond the upper bound, and counts of three bytes.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

use kvant_load::config::{Arrival, LoadConfig, Phase, Rate, StatusSet};
use kvant_load::histogram::HIGHEST_NS;
use kvant_load::report::hgrm;
use kvant_load::report::hlog::HlogWriter;
use kvant_load::report::json::{ConfigFacts, HostFacts, PhaseResult, ResultFile};
use kvant_load::{Histogram, Interval, OpNames, Outcome, verdict};
use std::error::Error;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: u64 = 6;
const START_WALL_MS: u64 = 1_700_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let names = OpNames::default();
    let mut log = Vec::new();
    let mut hlog = HlogWriter::new(&mut log);
    let mut file = ResultFile::new(
        Vec::new(),
        HostFacts::of_this_machine(),
        ConfigFacts::of(&config(), "made up"),
    );
    let mut all = Histogram::new();
    for phase in 0..2 {
        let mut total = Interval { end_ns: SECONDS * SECOND_NS, ..Interval::default() };
        for second in 0..SECONDS {
            let interval = interval(&names, phase, second);
            let now_wall_ms = START_WALL_MS + (phase * (SECONDS + 2) + second + 1) * 1_000;
            hlog.write(&interval, &names.all(), now_wall_ms)?;
            total.add(&interval);
        }
        let outcome = outcome(&names, phase, total);
        all.add(&outcome.response());
        file.phases.push(PhaseResult::of(&outcome, "", Some(&verdict::judge(&outcome))));
    }
    let mut distribution = Vec::new();
    hgrm::write(&mut distribution, &all, "response times of all kinds")?;
    let files = serde_json::json!({
        "hlog": String::from_utf8(log)?,
        "result": file.to_json(),
        "hgrm": String::from_utf8(distribution)?,
    });
    println!("{files}");
    Ok(())
}

/// One second. The third is empty; the third kind appears late.
fn interval(names: &OpNames, phase: u64, second: u64) -> Interval {
    let kinds = ["GET /v0/entity", "put, 100 % gr\u{f6}\u{df}e\n", "late/kind:x"]
        .map(|name| names.intern(name));
    let mut interval = Interval {
        start_ns: second * SECOND_NS,
        end_ns: (second + 1) * SECOND_NS,
        planned: 5_000,
        sent: 5_000,
        ..Interval::default()
    };
    if second == 2 {
        return interval;
    }
    for i in 0..5_000_u64 {
        let kind = kinds[if i % 7 == 0 {
            1
        } else if second > 3 && i % 5 == 0 {
            2
        } else {
            0
        }];
        // From 0 to seconds, unordered.
        let ns = (i * 7_919 % 5_003).pow(2) * (1 + second * 40 + phase);
        let op = interval.op_mut(kind);
        op.response.record_ns(ns);
        op.service.record_ns(ns / 3);
        op.count_status(200);
        interval.send_lag.record_ns(i * 13);
        interval.completed += 1;
    }
    interval.op_mut(kinds[1]).response.record_ns(HIGHEST_NS * 3);
    interval.op_mut(kinds[0]).service.record_many_ns(250_000, 70_000);
    if second == 0 {
        interval.connect.record_many_ns(90_000, 64);
    }
    interval
}

fn outcome(names: &OpNames, phase: u64, mut total: Interval) -> Outcome {
    let mut unanswered = Histogram::new();
    unanswered.record_many_ns(3 * SECOND_NS, phase * 5);
    total.name_ops(names.all());
    Outcome {
        phase: Phase {
            rate: Rate::Constant(5_000.0),
            warmup: Duration::from_secs(2),
            duration: Duration::from_secs(SECONDS),
            request_count_max: None,
        },
        start_wall_ms: START_WALL_MS,
        measure_start_ns: None,
        measured_ns: SECONDS * SECOND_NS,
        total,
        seconds: Vec::new(),
        backlog: phase * 5,
        in_flight: 0,
        unanswered,
        threads: Vec::new(),
        machine: None,
        is_cut_short: false,
    }
}

fn config() -> LoadConfig {
    LoadConfig {
        targets: Vec::new(),
        thread_count: 1,
        connection_count: 64,
        timeout: Duration::from_secs(2),
        arrival: Arrival::Uniform,
        seed: 1,
        ok_statuses: StatusSet::default(),
        batch_latency: false,
        wrk2_exact: false,
        spin: Duration::ZERO,
        interval: Duration::from_secs(1),
        ca_pem: None,
    }
}
