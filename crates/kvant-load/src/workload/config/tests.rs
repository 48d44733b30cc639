use super::*;

#[test]
fn a_workload_has_one_kind_or_a_mix() {
    let mix = |text| Mix::parse(text).unwrap();
    assert_eq!(Mix::of_workload("put", None), Ok(Mix::only(Kind::Put)));
    assert_eq!(Mix::of_workload("mixed", None), Ok(mix("get=90,put=10")));
    let mixed = Mix::of_workload("mixed", Some(mix("status=1, range=2"))).unwrap();
    assert_eq!(mixed.parts(), [(Kind::Status, 1), (Kind::Range, 2)]);
    assert_eq!(mixed.to_string(), "status=1,range=2");
    assert_eq!(mix("get=5").to_string(), "get");
    assert!(Mix::of_workload("post", None).unwrap_err().contains("`post`"));
    assert!(Mix::of_workload("put", Some(mix("get=1"))).unwrap_err().contains("`get=1`"));
    for text in ["get", "get=+1", "get=", "scan=1", "get=99999999999"] {
        let message = Mix::parse(text).unwrap_err();
        assert!(message.contains('`'), "{message} names the bad part");
    }
}

#[test]
fn lengths_are_one_number_or_two_with_units() {
    assert_eq!(ValueBytes::parse("10000"), Ok(ValueBytes::Fixed(10_000)));
    assert_eq!(ValueBytes::parse("4KiB"), Ok(ValueBytes::Fixed(4_096)));
    assert_eq!(ValueBytes::parse("1..10000"), Ok(ValueBytes::Random { min: 1, max: 10_000 }));
    assert_eq!(ValueBytes::parse("grow:0..1KiB"), Ok(ValueBytes::Growing { min: 0, max: 1_024 }));
    assert_eq!(KeyBytes::parse("12..100"), Ok(KeyBytes { min: 12, max: 100 }));
    for text in ["", "1..", "..2", "-1", "1...2", "1..2..3", "grow:", "1MB"] {
        assert!(ValueBytes::parse(text).is_err(), "{text}");
        assert!(KeyBytes::parse(text).is_err(), "{text}");
    }
}

#[test]
fn all_bad_values_are_reported_together() {
    let config = WorkloadConfig {
        key_count: 0,
        hit_ratio: 1.5,
        range_records: 0,
        key_bytes: KeyBytes { min: 5, max: 3 },
        value_bytes: ValueBytes::Random { min: 9, max: 1 << 40 },
        ..WorkloadConfig::new(Mix::parse("get=0,get=2000000").unwrap())
    };
    let problems = config.problems().join("\n");
    for part in [
        "0 keys",
        "hit ratio of 1.5",
        "range of 0",
        "the first exceeds the second",
        "not within 12",
        "values of",
        "get more than once",
        "2000000",
    ] {
        assert!(problems.contains(part), "no `{part}` in:\n{problems}");
    }
    assert!(Mix::parse("get=0").unwrap().problems()[0].contains("no kind"));
    let not_a_number =
        WorkloadConfig { hit_ratio: f64::NAN, ..WorkloadConfig::new(Mix::only(Kind::Get)) };
    assert_eq!(not_a_number.problems().len(), 1);
}

#[test]
fn the_defaults_have_no_problem() {
    for kind in Kind::ALL {
        assert_eq!(WorkloadConfig::new(Mix::only(kind)).problems(), Vec::<String>::new());
        assert_eq!(Kind::parse(kind.name()), Ok(kind));
    }
}

#[test]
fn not_found_is_expected_exactly_where_keys_may_be_absent() {
    let expects = |mix: &str, hit_ratio| {
        let mix = Mix::parse(mix).unwrap();
        WorkloadConfig { hit_ratio, ..WorkloadConfig::new(mix) }.expected_statuses().contains(404)
    };
    assert!(!expects("get=1", 1.0));
    assert!(expects("get=1", 0.99));
    assert!(expects("get=90,put=10", 0.0));
    assert!(expects("get=90,delete=10", 1.0));
    assert!(!expects("put=1,status=1,range=1", 0.5));
    assert!(!expects("put=1,delete=0", 1.0));
}
