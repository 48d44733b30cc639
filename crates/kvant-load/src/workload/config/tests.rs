use super::*;

#[test]
fn flags_mean_one_kind_or_a_mix() {
    assert_eq!(Mix::from_flags("put", None), Ok(Mix::only(Kind::Put)));
    assert_eq!(Mix::from_flags("mixed", None), Mix::parse("get=90,put=10"));
    assert_eq!(
        Mix::from_flags("mixed", Some("status=1, range=2")).unwrap().parts(),
        [(Kind::Status, 1), (Kind::Range, 2)]
    );
    for (workload, mix) in [
        ("post", None),
        ("put", Some("get=1")),
        ("mixed", Some("get")),
        ("mixed", Some("get=+1")),
        ("mixed", Some("get=")),
        ("mixed", Some("scan=1")),
        ("mixed", Some("get=99999999999")),
    ] {
        let message = Mix::from_flags(workload, mix).unwrap_err();
        assert!(message.contains('`'), "{message} names what cannot be read");
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
fn all_bad_values_are_named_at_once() {
    let config = WorkloadConfig {
        key_count: 0,
        hit_ratio: 1.5,
        range_records: 0,
        key_bytes: KeyBytes { min: 5, max: 3 },
        value_bytes: ValueBytes::Random { min: 9, max: 1 << 40 },
        paths: Paths {
            entity: "no key".into(),
            range: "/a{key}{key}".into(),
            status: "/\n".into(),
        },
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
        "`no key` does not begin",
        "`no key` has bytes",
        "`no key` does not have {key}",
        "`/a{key}{key}`",
        "`/\\n`",
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
