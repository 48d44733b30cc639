use super::*;
use crate::source::Expected;
use std::collections::BTreeMap;

fn target(path: &str) -> Target {
    Target::parse(&format!("http://localhost:8080{path}")).unwrap()
}

fn config(mix: &str) -> WorkloadConfig {
    WorkloadConfig { key_count: 1_000, ..WorkloadConfig::new(Mix::parse(mix).unwrap()) }
}

fn one(config: &WorkloadConfig) -> Box<dyn RequestSource> {
    let mut sources = sources(config, &[target("/")], &[], 1, &OpNames::default()).unwrap();
    sources.pop().unwrap()
}

fn texts(source: &mut dyn RequestSource, count: usize) -> Vec<String> {
    (0..count).map(|_| String::from_utf8(source.next(0).unwrap().bytes.to_vec()).unwrap()).collect()
}

/// The decimal number of the key in a request.
fn index(text: &str) -> u64 {
    let at = text.find("id=").or_else(|| text.find("start=")).unwrap();
    let digits = text[at..].split_once('=').unwrap().1;
    digits[..key::DIGITS].parse().unwrap()
}

#[test]
fn requests_follow_the_servers_api() {
    let first = |mix: &str| {
        let config = WorkloadConfig { key_dist: KeyDist::Sequential, ..config(mix) };
        texts(&mut *one(&config), 1).remove(0)
    };
    assert_eq!(
        first("get=1"),
        "GET /v0/entity?id=000000000000 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"
    );
    assert_eq!(
        first("delete=1"),
        "DELETE /v0/entity?id=000000000000 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"
    );
    assert_eq!(first("status=1"), "GET /v0/status HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
    assert_eq!(
        first("range=1"),
        "GET /v0/entities?start=000000000000&limit=100 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"
    );
    let put = first("put=1");
    let (head, value) = put.split_once("\r\n\r\n").unwrap();
    let expected =
        "PUT /v0/entity?id=000000000000 HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 12";
    assert_eq!(head, expected);
    assert_eq!(value.len(), 12);
    let expiring = WorkloadConfig { ttl_s: Some(60), ..config("put=1,get=1") };
    for text in texts(&mut *one(&expiring), 20) {
        assert_eq!(text.starts_with("PUT "), text.contains("&ttl=60 HTTP/1.1"), "{text}");
    }
}

#[test]
fn the_length_of_a_value_is_that_of_its_body() {
    let config = WorkloadConfig {
        value_bytes: ValueBytes::Random { min: 0, max: 12_000 },
        ..config("put=1")
    };
    for text in texts(&mut *one(&config), 500) {
        let (head, value) = text.split_once("\r\n\r\n").unwrap();
        let length: usize = head.split_once("Content-Length: ").unwrap().1.parse().unwrap();
        assert_eq!(length, value.len());
    }
}

#[test]
fn headers_and_base_paths_are_the_callers() {
    let headers = [("host".to_string(), "other".to_string()), ("X-A".into(), "b".into())];
    let config = WorkloadConfig { key_dist: KeyDist::Sequential, ..config("get=1") };
    let targets = [target("/"), target("/base/")];
    let mut sources = sources(&config, &targets, &headers, 1, &OpNames::default()).unwrap();
    let mut text =
        |target| String::from_utf8(sources[0].next(target).unwrap().bytes.to_vec()).unwrap();
    let rest = "HTTP/1.1\r\nhost: other\r\nX-A: b\r\n\r\n";
    assert_eq!(text(0), format!("GET /v0/entity?id=000000000000 {rest}"));
    assert_eq!(text(1), format!("GET /base/v0/entity?id=000000000001 {rest}"));
}

#[test]
fn a_url_with_a_query_and_a_bad_workload_are_rejected() {
    let ops = OpNames::default();
    let error = sources(&config("get=1"), &[target("/?a=b")], &[], 1, &ops).err().unwrap();
    assert!(error.to_string().contains("query"), "{error}");
    let bad = WorkloadConfig { key_count: 0, hit_ratio: 2.0, ..config("get=1") };
    let error = sources(&bad, &[target("/")], &[], 1, &ops).err().unwrap().to_string();
    assert!(error.contains("0 keys") && error.contains("hit ratio"), "{error}");
}

#[test]
fn one_seed_and_number_of_threads_give_the_same_requests() {
    let run = |seed, threads| -> Vec<Vec<String>> {
        let config = WorkloadConfig {
            seed,
            key_dist: KeyDist::Zipfian,
            hit_ratio: 0.5,
            value_bytes: ValueBytes::Random { min: 1, max: 100 },
            ..config("get=5,put=5,delete=1,range=1,status=1")
        };
        let sources = sources(&config, &[target("/")], &[], threads, &OpNames::default()).unwrap();
        sources.into_iter().map(|mut source| texts(&mut *source, 200)).collect()
    };
    assert_eq!(run(7, 2), run(7, 2));
    let (seven, eight) = (run(7, 2), run(8, 2));
    assert_ne!(seven, eight);
    assert_ne!(seven[0], seven[1], "threads differ");
    assert_ne!(seven[1], eight[0], "thread 1 of a seed is not thread 0 of the next seed");
}

#[test]
fn a_sequential_pass_uses_each_key_once_over_all_threads() {
    let config = WorkloadConfig { key_dist: KeyDist::Sequential, ..config("put=1") };
    let sources = sources(&config, &[target("/")], &[], 3, &OpNames::default()).unwrap();
    let mut all: Vec<u64> = Vec::new();
    for (mut source, own) in sources.into_iter().zip([334, 333, 333]) {
        all.extend(texts(&mut *source, own).iter().map(|text| index(text)));
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(0..1_000));
}

#[test]
fn the_hit_ratio_holds_and_misses_lie_between_stored_keys() {
    for ratio in [0.0, 0.25, 1.0] {
        let config = WorkloadConfig { hit_ratio: ratio, ..config("get=1,delete=1") };
        let texts = texts(&mut *one(&config), 20_000);
        let misses: Vec<_> = texts.iter().filter(|text| text.contains("- HTTP/1.1")).collect();
        let part = 1.0 - misses.len() as f64 / texts.len() as f64;
        assert!((part - ratio).abs() < 0.02, "{part} of {ratio}");
        assert!(ratio > 0.0 || part == 0.0);
        assert!(ratio < 1.0 || part == 1.0);
        assert!(misses.iter().all(|text| index(text) < 999), "no key is stored after the last one");
        assert!(texts.iter().all(|text| index(text) < 1_000));
    }
}

#[test]
fn all_records_of_a_range_exist() {
    let config = WorkloadConfig { range_records: 900, ..config("range=1") };
    let starts: Vec<_> = texts(&mut *one(&config), 2_000).iter().map(|text| index(text)).collect();
    assert!(starts.iter().all(|start| *start <= 100));
    assert!(starts.contains(&100) && starts.contains(&0));
    let config = WorkloadConfig { range_records: 5_000, ..config };
    assert!(
        texts(&mut *one(&config), 20).iter().all(|text| index(text) == 0),
        "more records than keys"
    );
}

#[test]
fn a_mix_has_its_weights_and_names_each_kind() {
    let ops = OpNames::default();
    let config = config("get=60,put=30,status=10,delete=0");
    let mut source = sources(&config, &[target("/")], &[], 1, &ops).unwrap().pop().unwrap();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..20_000 {
        let batch = source.next(0).unwrap();
        let [Expected { op, is_head: false }] = batch.requests else {
            panic!("{:?}", batch.requests)
        };
        let name = ops.all()[op.index()].clone();
        let method = if name == "put" { "PUT " } else { "GET " };
        assert!(batch.bytes.starts_with(method.as_bytes()));
        assert_eq!(name == "status", batch.bytes.starts_with(b"GET /v0/status"));
        *counts.entry(name).or_default() += 1;
    }
    let expected = [("get", 12_000), ("put", 6_000), ("status", 2_000)];
    assert_eq!(counts.len(), expected.len(), "{counts:?}");
    for (name, count) in expected {
        assert!(counts[name].abs_diff(count) < 400, "{counts:?}");
    }
}

#[test]
fn growing_values_grow_over_all_threads() {
    let config = WorkloadConfig {
        value_bytes: ValueBytes::Growing { min: 10, max: 1_000 },
        ..config("put=1")
    };
    let sources = sources(&config, &[target("/")], &[], 2, &OpNames::default()).unwrap();
    let lengths: Vec<Vec<usize>> = sources
        .into_iter()
        .map(|mut source| {
            texts(&mut *source, 3)
                .iter()
                .map(|text| text.split_once("\r\n\r\n").unwrap().1.len())
                .collect()
        })
        .collect();
    assert_eq!(lengths, [[10, 12, 14], [11, 13, 15]]);
}

#[test]
fn a_workload_of_one_key_uses_only_that_key() {
    for dist in [KeyDist::Sequential, KeyDist::Uniform, KeyDist::Zipfian] {
        let config = WorkloadConfig { key_count: 1, key_dist: dist, ..config("get=1,range=1") };
        assert!(texts(&mut *one(&config), 50).iter().all(|text| index(text) == 0));
    }
}
