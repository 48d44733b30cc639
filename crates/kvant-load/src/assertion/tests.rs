use super::*;
use crate::config::{Phase, Rate};
use crate::histogram::Histogram;
use crate::op::OpNames;
use crate::outcome::Outcome;
use crate::record::Interval;

const MS: u64 = 1_000_000;

/// Ten seconds at 100/s: 900 GETs of 1 to 9 ms, 100 PUTs of 20 ms; service takes half of that.
fn outcome() -> Outcome {
    let names = OpNames::default();
    let (get, put) = (names.intern("GET /v0/entity"), names.intern("put"));
    let mut total = Interval {
        end_ns: 10_000 * MS,
        planned: 1_000,
        sent: 1_000,
        completed: 1_000,
        ..Interval::default()
    };
    for i in 0..1_000 {
        let (op, ns) = if i % 10 == 0 { (put, 20 * MS) } else { (get, (i % 10) * MS) };
        total.op_mut(op).response.record_ns(ns);
        total.op_mut(op).service.record_ns(ns / 2);
        total.op_mut(op).count_status(200);
        total.send_lag.record_ns(30_000);
    }
    total.errors.status = 2;
    total.name_ops(names.all());
    Outcome {
        phase: Phase { rate: Rate::Constant(100.0), ..Phase::default() },
        measured_ns: 10_000 * MS,
        total,
        ..Outcome::default()
    }
}

fn check(text: &str, outcome: &Outcome, baseline: Option<&Outcome>) -> Checked {
    Assertion::parse(text).unwrap_or_else(|error| panic!("{error}")).check(outcome, baseline)
}

#[test]
fn assertions_hold_or_break() {
    let outcome = outcome();
    let cases = [
        ("p99<25ms", true),
        ("p99 < 20ms", false),
        ("p50<=5.01ms", true),
        ("p99.9>=20ms", true),
        ("max<1s", true),
        ("max<20ms", false),
        ("mean<7ms", true),
        ("mean>7ms", false),
        ("response.p50>5000000ns", true),
        ("service.p99<11ms", true),
        ("service.max<9ms", false),
        ("lag.p99<50us", true),
        ("lag.p99<29us", false),
        ("rate>=100", true),
        ("rate>0.1k/s", false),
        ("rate>=99%", true),
        ("rate>100%", false),
        ("errors==2", true),
        ("errors=0", false),
        ("errors<0.3%", true),
        ("errors<0.2%", false),
        ("timeouts==0", true),
        ("backlog==0", true),
        ("backlog<=1%", true),
        ("completed>=1k", true),
        ("completed>=100%", true),
        ("put:p99>15ms", true),
        ("PUT : p50 < 15ms", false),
        ("GET /v0/entity:p99<10ms", true),
        ("get /V0/entity:service.max<5ms", true),
        ("put:rate<=10", true),
        ("put:completed==100", true),
    ];
    for (text, is_met) in cases {
        let checked = check(text, &outcome, None);
        assert_eq!(checked.undecided, None, "{text}");
        assert_eq!(checked.is_met, is_met, "{checked}");
        assert!(!checked.value.is_empty(), "{text}");
    }
}

#[test]
fn the_text_has_the_measured_value() {
    let outcome = outcome();
    assert_eq!(check("p99<5ms", &outcome, None).to_string(), "p99<5ms: broken (20.005ms)");
    assert_eq!(
        check(" rate >= 90% ", &outcome, None).to_string(),
        "rate >= 90%: holds (100.0000%, 100.00/s of 100.00/s)"
    );
    assert_eq!(
        check("errors<1%", &outcome, None).to_string(),
        "errors<1%: holds (0.2000%, 2 of 1000)"
    );
}

#[test]
fn a_hang_meets_no_assertion() {
    let mut hung = outcome();
    // The server responded for nine seconds, then hung for one: 100 requests wait.
    hung.unanswered = (0..100_u64).fold(Histogram::new(), |mut ages, i| {
        ages.record_ns(i * 10 * MS);
        ages
    });
    hung.in_flight = 64;
    hung.backlog = 36;
    for text in [
        "p99<100ms",
        "p99.9<500ms",
        "max<900ms",
        "get /v0/entity:p99<500ms",
        "put:p50<20ms",
        "backlog==0",
    ] {
        let checked = check(text, &hung, None);
        assert!(!checked.is_met && checked.undecided.is_none(), "{checked}");
    }
    // No response at all: no value, so nothing is met.
    let mut dead = outcome();
    dead.total = Interval { planned: 1_000, sent: 64, ..Interval::default() };
    dead.unanswered.record_many_ns(10, 1_000);
    for text in [
        "p99<1h",
        "max<1h",
        "mean<1h",
        "service.p99<1h",
        "errors==0",
        "timeouts==0",
        "errors<1%",
        "rate>=1",
    ] {
        let checked = check(text, &dead, None);
        assert!(!checked.is_met, "{checked}");
    }
    assert_eq!(
        check("p99<1h", &dead, None).to_string(),
        "p99<1h: not decided: no request was answered"
    );
}

#[test]
fn young_unanswered_requests_do_not_improve_a_value() {
    let mut outcome = outcome();
    let before = check("put:p50<1ms", &outcome, None).value;
    outcome.unanswered.record_many_ns(10, 500);
    assert_eq!(check("put:p50<1ms", &outcome, None).value, before);
}

#[test]
fn a_baseline_bounds_its_own_measure() {
    let base = outcome();
    let mut slower = outcome();
    let put = &mut slower.total.ops[1];
    put.response.clear();
    put.response.record_many_ns(25 * MS, 100);
    for (text, is_met) in [
        ("p99<=base*1.3", true),
        ("p99 <= base * 1.1", false),
        ("put:p50<base", false),
        ("GET /v0/entity:p99.9<=base", true),
        ("service.p99<=base", true),
        ("rate>=base*0.95", true),
    ] {
        assert!(Assertion::parse(text).unwrap().needs_baseline());
        let checked = check(text, &slower, Some(&base));
        assert_eq!(checked.is_met, is_met, "{checked}");
    }
    assert_eq!(
        check("p99<=base*1.1", &slower, Some(&base)).to_string(),
        "p99<=base*1.1: broken (25.002ms, baseline 20.005ms)"
    );
    let undecided = check("p99<=base", &slower, None);
    assert_eq!(undecided.to_string(), "p99<=base: not decided: there is no baseline of this rate");
    let mut other = base.clone();
    other.total.ops[1].name = "post".to_owned();
    let undecided = check("put:p99<=base", &slower, Some(&other)).undecided.unwrap();
    assert!(
        undecided.starts_with("in the baseline, there is no kind of requests \"put\""),
        "{undecided}"
    );
}

#[test]
fn an_unknown_kind_is_reported_with_the_known_ones() {
    let undecided = check("delete:p99<1s", &outcome(), None).undecided.unwrap();
    assert!(undecided.contains("\"delete\"") && undecided.contains("\"put\""), "{undecided}");
    // Two kinds that differ in case need an exact match.
    let mut both = outcome();
    both.total.ops[0].name = "PUT".to_owned();
    assert!(check("PUT:p99<10ms", &both, None).is_met);
    assert!(!check("put:p99<10ms", &both, None).is_met);
    assert!(check("Put:p99<1h", &both, None).undecided.is_some());
}

#[test]
fn the_last_colon_ends_the_name_of_a_kind() {
    let mut outcome = outcome();
    outcome.total.ops[1].name = "GET /a:b?c<d".to_owned();
    assert!(check("GET /a:b?c<d:p99<1s", &outcome, None).is_met);
}

#[test]
fn an_error_points_at_its_place() {
    let cases = [
        ("", "", "what is asserted"),
        ("p99", "", "a comparison must follow"),
        ("p99<", "", "a time with its unit"),
        ("p99<5", "", "a time with its unit"),
        ("p99<5q", "q", "a time with its unit"),
        ("p99<5ms now", "ms now", "a time with its unit"),
        ("p99<1%", "%", "a time with its unit"),
        ("p101<5ms", "101", "from 0 to 100"),
        ("p9x<5ms", "9x", "from 0 to 100"),
        ("latency<5ms", "latency", "one of p50"),
        ("service.rate>5", "rate", "a latency has"),
        ("service<5ms", "service", "one of p50"),
        ("rate>=fast", "fast", "20k"),
        ("rate>=5ms", "ms", "20k"),
        ("rate==5", "==5", "only counts are exact"),
        ("errors<=1.2.3", "1.2.3", "a number of requests"),
        ("errors<=base", "base", "not comparable"),
        ("p99<base+1", "+1", "with a factor"),
        ("p99<base*0", "*0", "with a factor"),
        ("get:errors==0", "get", "by kind"),
        ("get:lag.p99<1ms", "get", "by kind"),
        (":p99<1ms", ":p99<1ms", "before the colon"),
        ("größe:p99<5q", "q", "a time with its unit"),
    ];
    for (text, place, message) in cases {
        let error = Assertion::parse(text).unwrap_err();
        assert!(text[error.at_bytes..].starts_with(place), "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
        if place.is_empty() {
            assert_eq!(error.at_bytes, text.len(), "{text}");
        }
    }
    let shown = Assertion::parse("größe:p99<5q").unwrap_err().to_string();
    assert!(shown.starts_with("`größe:p99<5q`, at `q` (character 12): expected a time"), "{shown}");
    assert!(Assertion::parse("p99").unwrap_err().to_string().starts_with("`p99`, at its end: "));
}

#[test]
fn upper_bounds_of_failures_and_latencies_are_known_early() {
    for (text, is_early) in [
        ("errors==0", true),
        ("errors<0.1%", true),
        ("timeouts<=3", true),
        ("p99<5ms", true),
        ("put:service.max<=1s", true),
        ("p99<=base*1.1", true),
        ("errors==5", false),
        ("errors>0", false),
        ("p50>=1ms", false),
        ("rate>=99%", false),
        ("completed>=99.5%", false),
        ("backlog<100", false),
    ] {
        assert_eq!(Assertion::parse(text).unwrap().is_known_early(), is_early, "{text}");
    }
}
