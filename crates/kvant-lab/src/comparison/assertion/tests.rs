use super::*;

fn parse(text: &str) -> RatioAssertion {
    RatioAssertion::parse(text).unwrap()
}

#[test]
fn an_interval_decides_only_as_a_whole() {
    let at_most = parse("p99 <= 1.05x");
    assert_eq!(at_most.check(Some((0.97, 1.05))), Decision::Holds);
    assert_eq!(at_most.check(Some((1.06, 1.2))), Decision::Violated);
    assert_eq!(at_most.check(Some((1.0, 1.06))), Decision::Undecided);
    assert_eq!(at_most.check(None), Decision::Undecided);
    let at_least = parse("rate>=0.95x");
    assert_eq!(at_least.check(Some((0.96, 1.2))), Decision::Holds);
    assert_eq!(at_least.check(Some((0.8, 0.94))), Decision::Violated);
    assert_eq!(at_least.check(Some((0.9, 1.0))), Decision::Undecided);
}

#[test]
fn a_workload_and_a_phase_narrow_it() {
    let all = parse("p99.9<2x");
    assert!(all.is_about("get", "held", Figure::P999));
    assert!(!all.is_about("get", "held", Figure::P99));
    let of_workload = parse("get: cpu < 1.1x");
    assert!(of_workload.is_about("get", "held", Figure::Cpu));
    assert!(!of_workload.is_about("put", "held", Figure::Cpu));
    let of_phase = parse("get/held: cpu < 1.1x");
    assert!(of_phase.is_about("get", "held", Figure::Cpu));
    assert!(!of_phase.is_about("get", "limit", Figure::Cpu));
}

#[test]
fn what_is_wrong_is_said() {
    for (text, what) in [
        ("p99 1.05x", "write <=, <, >= or >"),
        ("p99 <= 1.05", "write a factor with an x"),
        ("p99 <= -1x", "write a factor above 0"),
        ("p99 <= nanx", "write a factor above 0"),
        (
            "p42 <= 1.05x",
            "write one of p50, p90, p99, p99.9, rate, cpu, written, allocated, waited",
        ),
        ("max <= 1.05x", "write one of p50"),
    ] {
        let problem = RatioAssertion::parse(text).unwrap_err();
        assert!(problem.contains(what), "{problem}");
    }
}
