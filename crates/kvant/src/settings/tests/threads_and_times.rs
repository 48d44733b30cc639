//! Settings of the server's threads, its queue and its time limits.

use super::*;

#[test]
fn dispatch_modes_and_overload_policies() {
    for (word, mode) in [
        ("inline", DispatchMode::Inline),
        ("pool", DispatchMode::Pool),
        ("hybrid", DispatchMode::Hybrid),
    ] {
        let flags = [("dispatch", word), ("workers", "3"), ("queue-capacity", "77")];
        let settings = read_all(&flags, &[], None).expect("usable in every mode").settings;
        assert_eq!(settings.server.dispatch, mode);
        assert_eq!((settings.server.workers, settings.server.queue_capacity), (3, 77));
    }
    for (word, policy) in [
        ("adaptive", Overload::Adaptive),
        ("reject", Overload::Reject),
        ("discard", Overload::Reject),
        ("discard-oldest", Overload::DiscardOldest),
        ("caller-runs", Overload::CallerRuns),
    ] {
        let config = read_all(&[("overload", word)], &[], None).expect("usable");
        assert_eq!(config.settings.server.overload, policy);
    }
}

#[test]
fn lists_of_cpus() {
    for (text, cpus) in
        [("0", vec![0]), ("0,2-3", vec![0, 2, 3]), ("5-5, 1", vec![5, 1]), ("1023", vec![1023])]
    {
        assert_eq!(kind::cpus(text), Ok(cpus), "{text}");
    }
    for text in ["", "x", "-1", "1-", "3-2", "0,", "0..2", "1024", "0-18446744073709551615"] {
        let problems = problems_of(&[("selector-cpus", text)], &[], None);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].contains("is not a list of CPUs"), "{problems:?}");
    }
}

#[test]
fn a_cpu_that_this_process_may_not_use_is_named_with_its_origin() {
    let file = Some("selector-cpus = '1023, 0-1023'\n");
    let problems = problems_of(&[], &[], file);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with("file kvant.toml:1: selector-cpus: CPU ")
            && problems[0].contains("1023"),
        "{problems:?}"
    );
}

#[test]
fn times_of_connections_are_longer_than_zero() {
    for name in ["connection-idle-max", "head-wait-max", "range-idle-max"] {
        assert_eq!(
            problems_of(&[(name, "0s")], &[], None),
            [format!("flag --{name}: must be longer than zero")]
        );
    }
}
