use super::text::rounded;
use super::*;
use crate::histogram::Histogram;
use crate::machine::MachineUse;
use crate::report::testing::{calm, outcome, overloaded};

/// A phase of 10,000 requests, in groups of count, response time and send lag.
fn with_lag(parts: &[(u64, u64, u64)]) -> Outcome {
    let mut outcome = calm(1_000);
    let total = &mut outcome.total;
    let op = &mut total.ops[0];
    op.response.clear();
    op.service.clear();
    total.send_lag.clear();
    for &(count, response_ns, lag_ns) in parts {
        op.response.record_many_ns(response_ns, count);
        op.service.record_many_ns(response_ns - lag_ns, count);
        total.send_lag.record_many_ns(lag_ns, count);
        (0..count).for_each(|_| total.lateness.record_ns(response_ns, lag_ns));
    }
    outcome
}

fn with_cpu(mut outcome: Outcome, part: f64) -> Outcome {
    let cpu_ns = (outcome.measured_ns as f64 * part) as u64;
    outcome.total.cpu_ns = cpu_ns;
    outcome.threads[0].cpu_ns = cpu_ns;
    outcome
}

fn says(verdict: &Verdict, words: &str) -> bool {
    verdict.sentences.iter().any(|sentence| sentence.contains(words))
}

#[test]
fn a_plan_that_was_kept_has_no_limit() {
    let verdict = judge(&calm(1_000));
    assert_eq!(
        verdict.line(),
        "Verdict: valid, bound by neither: 100.00 % of the plan answered, send lag p99 13.82us"
    );
    assert_eq!(verdict.sentences, [""; 0]);
}

/// The generator was late for one request of twenty.
#[test]
fn p50_is_the_servers_if_only_p99_is_the_generators() {
    let late = with_lag(&[(9_500, 20_380_000, 50_000), (500, 24_100_000, 3_800_000)]);
    let verdict = judge(&late);
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Generator, false));
    let line = verdict.line();
    assert!(
        line.starts_with("Verdict: NOT VALID for p99, generator-bound: 3.80ms of p99 24.1"),
        "{line}"
    );
    assert!(
        says(&verdict, "p50 20.33ms of 20.38ms, p90 20.33ms of 20.38ms, p99 20.30ms of 24.1"),
        "{verdict:?}"
    );
    assert!(!says(&verdict, "generator's own"), "{verdict:?}");
    let servers: Vec<bool> = verdict.shares.iter().map(|share| share.is_server).collect();
    assert_eq!(servers, [true, true, false, false]);
}

#[test]
fn doubt_depends_on_the_percentile() {
    let late = judge(&with_lag(&[(9_500, 20_380_000, 50_000), (500, 24_100_000, 3_800_000)]));
    let doubts = |verdict: &Verdict| {
        [Some(50.0), Some(75.0), Some(90.0), Some(95.0), Some(99.0), Some(99.99), None]
            .map(|percent| verdict.is_doubtful(percent))
    };
    assert_eq!(doubts(&late), [false, false, false, true, true, true, true]);
    // Two requests of a thousand were late: the phase stays valid.
    let rare = judge(&with_lag(&[(9_980, 20_000_000, 10_000), (20, 30_000_000, 10_000_000)]));
    assert!(rare.is_valid, "{rare:?}");
    assert!(says(&rare, "p99.9 20.0"), "{rare:?}");
    assert_eq!(doubts(&rare), [false, false, false, false, false, true, false]);
    let mut silent = calm(1_000);
    silent.total.completed = 0;
    assert_eq!(doubts(&judge(&silent)), [false; 7], "the server's fault");
    let mut disturbed = calm(1_000);
    disturbed.machine = Some(MachineUse { stolen_part: 0.12, ..MachineUse::default() });
    assert_eq!(doubts(&judge(&disturbed)), [true; 7]);
}

#[test]
fn a_generator_that_is_always_late_invalidates_all_percentiles() {
    let verdict = judge(&with_lag(&[(10_000, 5_000_000, 480_000)]));
    assert!(verdict.is_valid, "{verdict:?}");
    let verdict = judge(&with_lag(&[(10_000, 5_000_000, 520_000)]));
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Generator, false));
    let line = verdict.line();
    assert!(line.starts_with("Verdict: NOT VALID, generator-bound: 520."), "{line}");
    assert!(
        says(&verdict, "generator's own") && says(&verdict, "cores of their own"),
        "{verdict:?}"
    );
}

/// The 99th percentile of the lag, 600 us, is more than a tenth of that of the response time, but
/// other requests were late than those that were slow.
#[test]
fn slow_requests_are_the_servers_if_other_requests_were_late() {
    let verdict = judge(&with_lag(&[
        (9_000, 1_000_000, 10_000),
        (800, 1_700_000, 600_000),
        (200, 5_000_000, 5_000),
    ]));
    assert_eq!(
        verdict.line().split(", send lag").next(),
        Some("Verdict: valid, bound by neither: 100.00 % of the plan answered")
    );
    assert_eq!(verdict.sentences, [""; 0]);
}

#[test]
fn slow_wake_ups_of_the_generator_are_not_a_limit_of_the_server() {
    let verdict = judge(&with_lag(&[(9_000, 200_000, 80_000), (1_000, 5_000_000, 80_000)]));
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Neither, false));
    assert!(
        verdict.line().starts_with("Verdict: NOT VALID for p50, p90, bound by neither"),
        "{verdict:?}"
    );
    assert!(says(&verdict, "--spin always"), "{verdict:?}");
}

#[test]
fn microseconds_of_lag_do_not_invalidate_a_fast_server() {
    assert!(judge(&with_lag(&[(10_000, 60_000, 45_000)])).is_valid);
    assert!(!judge(&with_lag(&[(10_000, 60_000, 56_000)])).is_valid);
}

#[test]
fn a_server_that_never_responds_is_not_valid() {
    let mut silent = outcome(2.0, Histogram::new(), Histogram::new());
    silent.total.planned = 2_000;
    silent.total.sent = 64;
    silent.backlog = 1_936;
    silent.in_flight = 64;
    silent.unanswered.record_many_ns(500_000_000, 2_000);
    // Without and with timeouts, and in a closed loop.
    let mut timed_out = silent.clone();
    timed_out.total.errors.timeout = 64;
    timed_out.total.ops[0].response.record_many_ns(2_000_000_000, 64);
    let mut closed = timed_out.clone();
    closed.phase.rate = Rate::Closed;
    for outcome in [silent, timed_out, closed] {
        let verdict = judge(&outcome);
        assert_eq!((verdict.bound, verdict.is_valid), (Bound::Server, false), "{verdict:?}");
        assert_eq!(verdict.headline, "none of 64 requests was answered");
    }
}

#[test]
fn a_disturbed_machine_invalidates_a_phase() {
    let mut disturbed = calm(1_000);
    disturbed.machine =
        Some(MachineUse { stolen_part: 0.12, others_part: 0.3, ..MachineUse::default() });
    let verdict = judge(&disturbed);
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Neither, false));
    assert_eq!(
        verdict.line(),
        "Verdict: NOT VALID, disturbed: the hypervisor took 12 % of the CPU time, other processes 30 %"
    );
    assert!(
        says(&verdict, "As measured: bound by neither, 100.00 % of the plan answered"),
        "{verdict:?}"
    );
    disturbed.machine = Some(MachineUse::default());
    assert!(judge(&disturbed).is_valid);
}

#[test]
fn an_overloaded_server_is_distinguished_from_an_overloaded_generator() {
    let verdict = judge(&overloaded(20_000, 72));
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Server, true));
    assert_eq!(
        verdict.line(),
        "Verdict: valid, server-bound: 72.00 % of the plan answered, generator at 30 % CPU"
    );
    assert!(says(&verdict, "14.40k requests a second") && says(&verdict, "-R 11k"), "{verdict:?}");
    assert!(says(&verdict, "55956 requests are without an answer"), "{verdict:?}");

    let verdict = judge(&with_cpu(overloaded(20_000, 72), 0.97));
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Generator, false));
    assert!(verdict.headline.contains("97 % CPU"), "{}", verdict.headline);
    assert!(says(&verdict, "more threads"), "{verdict:?}");
}

#[test]
fn a_thread_that_polls_and_is_on_time_is_no_limit() {
    let verdict = judge(&with_cpu(calm(1_000), 0.99));
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Neither, true));
}

#[test]
fn a_slow_script_is_named() {
    let mut slow = with_cpu(overloaded(20_000, 50), 0.8);
    slow.total.source_ns = slow.measured_ns * 6 / 10;
    let verdict = judge(&slow);
    assert_eq!(verdict.bound, Bound::Generator);
    assert!(verdict.headline.contains("the script took 60 % of the time"), "{}", verdict.headline);
    assert!(says(&verdict, "--workload"), "{verdict:?}");
}

#[test]
fn the_script_takes_at_most_all_of_the_cpu_time() {
    let mut slow = with_cpu(overloaded(20_000, 50), 0.95);
    slow.total.source_ns = slow.total.cpu_ns * 131 / 100;
    let verdict = judge(&slow);
    assert!(says(&verdict, "The script took 100 % of the generator's CPU"), "{verdict:?}");
}

/// Half a percent of the plan may be missing, and the requests in flight at any time.
#[test]
fn requests_in_flight_at_the_end_are_not_missing() {
    let mut slow = calm(1_000);
    // Requests take 1 s: 1,000 of 10,000 are in flight at any time.
    for op in &mut slow.total.ops {
        op.service.clear();
        op.service.record_many_ns(1_000_000_000, 9_000);
        op.response = op.service.clone();
    }
    slow.total.completed = 9_000;
    slow.in_flight = 1_000;
    slow.unanswered.record_many_ns(500_000_000, 1_000);
    assert_eq!(judge(&slow).bound, Bound::Neither);

    let missing = |count| {
        let mut outcome = calm(1_000);
        outcome.total.completed -= count;
        outcome.backlog = count;
        judge(&outcome).bound
    };
    assert_eq!(missing(40), Bound::Neither);
    assert_eq!(missing(100), Bound::Server);
}

#[test]
fn a_closed_loop_names_the_omission_in_its_latencies() {
    let mut closed = calm(1_000);
    closed.phase.rate = Rate::Closed;
    let verdict = judge(&closed);
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Server, true));
    assert_eq!(verdict.line(), "Verdict: valid, server-bound: closed loop, 1.00k answers a second");
    assert!(says(&verdict, "leave out what was not asked"), "{verdict:?}");
    let verdict = judge(&with_cpu(closed, 0.95));
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Generator, false));
}

#[test]
fn failures_are_explained() {
    let mut failing = calm(1_000);
    failing.total.errors.connect = 7;
    failing.total.errors.read = 2;
    failing.total.errors.write = 3;
    failing.is_cut_short = true;
    let verdict = judge(&failing);
    for words in ["7 attempts to connect", "5 requests were lost", "ended after"] {
        assert!(says(&verdict, words), "{words}: {verdict:?}");
    }
}

#[test]
fn a_phase_without_responses_or_requests_is_not_valid() {
    let empty = || outcome(1.0, Histogram::new(), Histogram::new());
    assert!(!judge(&empty()).is_valid);
    let mut refused = empty();
    refused.total.planned = 1_000;
    refused.total.errors.connect = 12;
    let verdict = judge(&refused);
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Server, false));
    assert_eq!(verdict.headline, "no connection could be opened");
}

#[test]
fn every_headline_fits_a_line() {
    for outcome in [
        calm(1_000),
        with_lag(&[(10_000, 1_000_000_000, 900_000_000)]),
        overloaded(20_000, 1),
        with_cpu(overloaded(20_000, 99), 1.0),
    ] {
        let line = judge(&outcome).line();
        assert!(line.len() <= 100, "{line}");
    }
}

#[test]
fn advised_rates_are_round() {
    assert_eq!(rounded(11_520.0), "11k");
    assert_eq!(rounded(119_999.0), "110k");
    assert_eq!(rounded(1_234.0), "1200");
    assert_eq!(rounded(57.9), "57");
    assert_eq!(rounded(3.27), "3.3");
}

#[test]
fn only_unanswered_requests_beyond_the_usual_ones_in_flight_are_mentioned() {
    let late = |backlog: u64, in_flight: u64| {
        let mut outcome = calm(20_000);
        outcome.backlog = backlog;
        outcome.in_flight = in_flight;
        outcome.unanswered.record_many_ns(500_000, backlog + in_flight);
        let p99_ns = outcome.response_with_unanswered().percentile_ns(99.0);
        (0..100_000).for_each(|_| outcome.total.lateness.record_ns(p99_ns, p99_ns));
        let verdict = judge(&outcome);
        assert_eq!(verdict.bound, Bound::Generator);
        verdict
    };
    // 20,000 a second of 1 ms each: 20 on average, and at most twice as many.
    assert!(!says(&late(0, 20), "without an answer"));
    assert!(says(&late(1, 20), "1 request is without an answer"));
    assert!(says(&late(7, 20), "7 requests are without an answer"));
    assert!(says(&late(0, 1_000), "requests are without an answer"));
}

/// The plan was kept, but one request of eight waited for 5 ms until a connection was free.
#[test]
fn a_kept_plan_whose_requests_wait_for_connections_is_near_saturation() {
    let mut queued = calm(1_000);
    queued.total.ops[0].response.record_many_ns(6_000_000, 1_500);
    let verdict = judge(&queued);
    assert!(verdict.is_valid && verdict.bound == Bound::Neither, "{verdict:?}");
    assert!(says(&verdict, "p90 is 6.0"), "{verdict:?}");
    assert!(says(&verdict, "compare runs at a lower one, such as -R 800"), "{verdict:?}");
    queued.phase.rate = Rate::Closed;
    assert!(!says(&judge(&queued), "until a connection was free"), "a closed loop has no queue");
    // A pause of the server that less than a tenth of the requests met.
    let mut paused = calm(1_000);
    paused.total.ops[0].response.record_many_ns(200_000_000, 600);
    assert!(!says(&judge(&paused), "until a connection was free"));
}

/// Half of the requests are late by a timer of 1 ms, while cores are free.
#[test]
fn a_late_timer_is_not_called_a_wait_for_a_core() {
    let mut late = with_lag(&[(10_000, 660_000, 600_000)]);
    let waited = |part| Some(MachineUse { pressure_part: Some(part), ..MachineUse::default() });
    late.machine = waited(0.02);
    let verdict = judge(&late);
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Generator, false));
    assert!(says(&verdict, "woke up late although cores were free: --spin"), "{verdict:?}");
    assert!(!says(&verdict, "waited for a core"), "{verdict:?}");
    late.machine = waited(0.2);
    assert!(says(&judge(&late), "waited for a core"));
}
