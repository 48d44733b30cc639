use super::*;
use crate::child::Figures;
use crate::usage::{Memory, Usage};
use std::collections::BTreeMap;

/// A run of `readrandom` with a million operations in the time that gives `ops_per_second`.
fn run(engine: Kind, round: u64, ops_per_second: f64) -> Run {
    let at_ns = (1e6 / ops_per_second * 1e9) as u64;
    let usage = Usage { at_ns, ..Usage::default() };
    let figures = Figures {
        op_count: 1_000_000,
        user_bytes: 0,
        usage,
        settled: usage,
        latencies: BTreeMap::new(),
        disk_bytes: 0,
        memory: Memory::default(),
        memory_bytes_set: 1,
        lost_count: 0,
        stats: serde_json::Value::Null,
    };
    Run { workload: "readrandom".into(), engine, round, attempt: 0, is_disturbed: false, figures }
}

/// The medians of all rounds would be 200 and 150; round by round, the machine's speed cancels out.
#[test]
fn a_ratio_compares_runs_of_the_same_round() {
    let rates = [(100.0, 150.0, 90.0), (200.0, 100.0, 90.0), (400.0, 200.0, 300.0)];
    let mut results = Results::default();
    for (round, (own, leveldb, fjall)) in rates.into_iter().enumerate() {
        let round = round as u64;
        results.runs.push(run(Kind::Kvant, round, own * 1e3));
        results.runs.push(run(Kind::LevelDb, round, leveldb * 1e3));
        results.runs.push(run(Kind::Fjall, round, fjall * 1e3));
    }
    let workload = workloads::find("readrandom").expect("it exists");
    let peer = results.fastest_peer(workload).expect("there are peers");
    assert_eq!(peer, Kind::LevelDb);
    let ratio = results.ratio(workload, peer, Run::ops_per_second).expect("there are runs");
    let rounded = [ratio.min, ratio.median, ratio.max].map(|value| (value * 100.0).round());
    assert_eq!(rounded, [67.0, 200.0, 200.0]);
}

#[test]
fn the_median_of_an_even_number_lies_between() {
    assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(Vec::new()), None);
}
