//! Fills and workloads over real sockets.

use crate::store::{Store, Trouble};
use kvant_env::Env;
use kvant_load::workload::{
    FillConfig, FillReport, Kind, Mix, ValueBytes, WorkloadConfig, fill, sources,
};
use kvant_load::{Arrival, Load, LoadConfig, OpNames, Outcome, Phase, Rate, StatusSet, Target};
use std::time::Duration;

fn load_config(url: &str, threads: usize, connections: usize) -> LoadConfig {
    LoadConfig {
        targets: vec![Target::parse(url).unwrap().resolve().unwrap()],
        thread_count: threads,
        connection_count: connections,
        timeout: Duration::from_secs(20),
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

fn fill_config(key_count: u64) -> FillConfig {
    let mut workload = WorkloadConfig::new(Mix::only(Kind::Put));
    workload.key_count = key_count;
    FillConfig { time_max: Duration::from_secs(120), ..FillConfig::new(workload) }
}

fn run_fill(config: &FillConfig, store: &Store) -> FillReport {
    let load = load_config(&store.url(), 2, 7);
    fill(config, &[], load, Env::posix(), &mut |_, _| true).unwrap()
}

fn check_complete(report: &FillReport, store: &Store) {
    assert_eq!(report.problem, None);
    assert_eq!(report.stored_keys, report.key_count);
    let keys = store.keys();
    let expected: Vec<String> = (0..report.key_count).map(|index| format!("{index:012}")).collect();
    assert!(keys.keys().eq(&expected), "{} of {} keys", keys.len(), expected.len());
}

#[test]
fn a_fill_stores_each_key_exactly_once() {
    let store = Store::start(Trouble::Nothing);
    let report = run_fill(&fill_config(20_001), &store);
    check_complete(&report, &store);
    assert!(store.keys().values().all(|times| *times == 1));
    assert_eq!(report.resent, 0);
    assert_eq!(report.stored_bytes, 20_001 * 24);
    assert!(report.rate() > 0.0 && report.bytes_rate() > report.rate());
}

#[test]
fn a_fill_with_fewer_keys_than_threads_and_connections_ends() {
    let store = Store::start(Trouble::Nothing);
    let report = run_fill(&fill_config(1), &store);
    check_complete(&report, &store);
}

#[test]
fn a_fill_survives_refusals_failures_and_broken_connections() {
    let store = Store::start(Trouble::Every(50));
    let config = FillConfig { pipeline: 5, ..fill_config(3_000) };
    let report = run_fill(&config, &store);
    check_complete(&report, &store);
    assert!(report.resent >= 3_000 / 50, "{} sent again", report.resent);
    let errors = report.outcome.total.errors;
    assert!(errors.status > 0 && errors.read > 0, "{errors:?}");
}

#[test]
fn a_fill_of_an_unknown_path_ends_at_once() {
    let store = Store::start(Trouble::Always("404 Not Found"));
    let report = run_fill(&fill_config(1_000_000), &store);
    assert!(report.problem.unwrap().contains("404"));
    assert_eq!(report.stored_keys, 0);
    assert!(store.requests() < 1_000, "{}", store.requests());
}

#[test]
fn a_fill_gives_up_after_the_last_try() {
    let store = Store::start(Trouble::Always("503 Busy"));
    let config = FillConfig { tries_max: 3, ..fill_config(10) };
    let problem = run_fill(&config, &store).problem.unwrap();
    assert!(problem.contains("3 times") && problem.contains("503"), "{problem}");
}

#[test]
fn a_fill_gives_up_when_its_time_is_over() {
    let store = Store::start(Trouble::Silence);
    let config = FillConfig { time_max: Duration::from_millis(300), ..fill_config(10) };
    let problem = run_fill(&config, &store).problem.unwrap();
    assert!(problem.contains("10 of 10 keys") && problem.contains("time"), "{problem}");
}

#[test]
fn a_caller_can_end_a_fill() {
    let store = Store::start(Trouble::Silence);
    let load = load_config(&store.url(), 1, 1);
    let report = fill(&fill_config(10), &[], load, Env::posix(), &mut |_, progress| {
        assert_eq!(progress.stored_keys(), 0);
        false
    })
    .unwrap();
    assert!(report.problem.unwrap().contains("interrupted"));
}

fn run_workload(config: &WorkloadConfig, store: &Store) -> Outcome {
    let ops = OpNames::default();
    let mut load = load_config(&store.url(), 2, 4);
    load.ok_statuses = config.expected_statuses();
    let sources = sources(config, &load.targets, &[], load.thread_count, &ops).unwrap();
    let mut load = Load::start(load, sources, ops, Env::posix()).unwrap();
    let phase = Phase {
        rate: Rate::Closed,
        warmup: Duration::ZERO,
        duration: Duration::from_secs(120),
        request_count_max: Some(2_000),
    };
    let outcome = load.run(&phase, &mut |_| true).unwrap();
    load.stop();
    assert_eq!(outcome.total.completed, 2_000);
    outcome
}

/// The number of responses of this kind with this status.
fn responses(outcome: &Outcome, kind: &str, status: u16) -> u64 {
    let statuses = &outcome.total.op(kind).unwrap().statuses;
    statuses.iter().filter(|(known, _)| *known == status).map(|(_, count)| count).sum()
}

#[test]
fn workloads_find_the_keys_of_a_fill_and_miss_the_others() {
    let store = Store::start(Trouble::Nothing);
    assert_eq!(run_fill(&fill_config(2_000), &store).problem, None);
    let config = WorkloadConfig {
        key_count: 1_000,
        hit_ratio: 0.5,
        range_records: 10,
        ..WorkloadConfig::new(Mix::parse("get=6,range=1,status=1").unwrap())
    };
    let outcome = run_workload(&config, &store);
    assert_eq!(outcome.total.errors.status, 0, "absent keys are no failures");
    let (hits, misses) = (responses(&outcome, "get", 200), responses(&outcome, "get", 404));
    assert!(hits > 0 && misses > 0, "{hits} {misses}");
    // Half and half, within six standard deviations.
    let deviation = ((hits + misses) as f64 / 4.0).sqrt();
    assert!(hits.abs_diff(misses) as f64 / 2.0 < 6.0 * deviation, "{hits} {misses}");
    assert!(responses(&outcome, "range", 200) > 0 && responses(&outcome, "status", 200) > 0);
    assert_eq!(store.keys().len(), 2_000);
}

#[test]
fn puts_and_deletes_arrive_whole() {
    let store = Store::start(Trouble::Nothing);
    let config = WorkloadConfig {
        key_count: 100,
        value_bytes: ValueBytes::Random { min: 1, max: 10_000 },
        ..WorkloadConfig::new(Mix::parse("put=9,delete=1").unwrap())
    };
    let outcome = run_workload(&config, &store);
    let (puts, deletes) = (responses(&outcome, "put", 201), responses(&outcome, "delete", 202));
    assert!(puts > deletes && deletes > 0);
    assert_eq!(outcome.total.completed, puts + deletes, "there is no other response");
    let stored = store.seen.stored.lock().unwrap();
    assert!(stored.keys().all(|key| key.len() == 12 && key.as_str() < "000000000100"));
    assert!(stored.values().all(|(length, _)| (1..=10_000).contains(length)));
}
