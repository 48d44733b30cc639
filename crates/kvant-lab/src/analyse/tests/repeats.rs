//! What several repeats say, and what too few do not.

use super::*;

fn with_rate(rate: f64) -> Files {
    let mut files = files(MS, MS, 1);
    files.load.phases[0].outcome.phase.rate = Rate::Constant(rate);
    files
}

#[test]
fn the_planned_rate_is_the_median_of_the_repeats() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    for (repeat, rate) in [(1, 900.0), (2, 1_100.0), (3, 1_000.0)] {
        fixture.attempt(0, repeat, AttemptVerdict::Valid, with_rate(rate));
    }
    assert_eq!(fixture.report().figures[0].planned_per_s, Some(1_000.0));
}

/// Repeats with ratios of CPU time.
fn compared(ratios: &[u64]) -> Report {
    let cases = vec![case(0, "kvant", PhaseKind::Hold), case(1, "java", PhaseKind::Hold)];
    let mut fixture = Fixture::new(cases);
    for (index, ratio) in ratios.iter().enumerate() {
        let repeat = index as u32 + 1;
        fixture.attempt(0, repeat, AttemptVerdict::Valid, files(MS, MS, 10 * MS));
        fixture.attempt(1, repeat, AttemptVerdict::Valid, files(MS, MS, ratio * MS));
    }
    fixture.report()
}

fn cpu_ratio(report: &Report) -> &model::Comparison {
    report.comparisons.iter().find(|one| one.figure == "cpu_per_request").unwrap()
}

#[test]
fn one_repeat_shows_no_difference() {
    let report = compared(&[40]);
    assert_eq!(cpu_ratio(&report).difference(), None);
    assert!(!report.verdict.iter().any(|text| text.en.contains("times that")), "{report:#?}");
}

#[test]
fn few_repeats_have_a_range_and_no_interval() {
    let report = compared(&[30, 40, 20]);
    let cpu = cpu_ratio(&report);
    assert_eq!((cpu.interval, cpu.difference()), (None, Some(true)));
    let expected = "cpu_per_request of java is 3.00 times that of kvant (get, hold; 2.00 .. 4.00 \
                    in 3 repeats).";
    assert!(report.verdict.iter().any(|text| text.en == expected), "{:?}", report.verdict);
}

#[test]
fn six_repeats_have_an_interval() {
    let report = compared(&[30, 40, 20, 25, 35, 45]);
    let cpu = cpu_ratio(&report);
    let (low, high) = cpu.interval.unwrap();
    assert_close(low, 2.0);
    assert_close(high, 4.5);
    assert!(
        report.verdict.iter().any(|text| text.en.contains("95 % interval 2.00 .. 4.50 of 6")),
        "{:?}",
        report.verdict
    );
}

#[test]
fn errors_goodput_and_the_generators_cost_are_figures() {
    let mut files = files(MS, MS, 1);
    let total = &mut files.load.phases[0].outcome.total;
    total.errors.status = 10;
    total.cpu_ns = 14 * MS;
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files);
    let failed = AttemptVerdict::Failed("it ended".to_owned());
    fixture.attempt(0, 2, failed, super::files(MS, MS, 1));
    let report = fixture.report();
    let figures = &report.figures[0];
    assert_close(figures.errors_part.median, 0.005);
    assert_close(figures.generator_cpu_per_request_ns.unwrap().median, 7_000.0);
    assert_eq!((figures.disturbed, figures.failed), (0, 1));
    let warning = "kvant, get, hold: 0.50 % of the requests failed.";
    assert!(report.warnings.iter().any(|text| text.en == warning), "{:?}", report.warnings);
    let text = crate::markdown::markdown(&report, Default::default(), None);
    let row = |start: &str| {
        let at = text.find(start).unwrap_or_else(|| panic!("no {start}: {text}"));
        text[at..].lines().nth(2).unwrap().to_owned()
    };
    // Case, planned, achieved, goodput, errors, latencies, attempts, disturbed, failed.
    assert_eq!(
        row("| case | planned, /s"),
        "| kvant / get / hold | 1000 | 1000 | 995 | 0.500 | 1.00 | 1.00 | 1.00 | 1.00 | 1 | 0 | 1 |"
    );
    // CPU, with later work, of the generator, memory, disk, amplification, switches.
    assert_eq!(
        row("| case | CPU, us/request"),
        "| kvant / get / hold | 0.0 | 0.0 | 7.0 | 0 | 64 | 3.00 | 0.75 |"
    );
}

#[test]
fn servers_are_compared_by_what_succeeds() {
    let cases = vec![case(0, "kvant", PhaseKind::Closed), case(1, "java", PhaseKind::Closed)];
    let mut fixture = Fixture::new(cases);
    let closed = |refused| {
        let mut files = files(MS, MS, 1);
        files.load.phases[0].outcome.phase.rate = Rate::Closed;
        files.load.phases[0].outcome.total.errors.status = refused;
        files
    };
    fixture.attempt(0, 1, AttemptVerdict::Valid, closed(0));
    fixture.attempt(1, 1, AttemptVerdict::Valid, closed(1_500));
    let report = fixture.report();
    let rates: Vec<&model::Comparison> =
        report.comparisons.iter().filter(|one| one.figure == "goodput").collect();
    assert_eq!(rates.len(), 1, "{:?}", report.comparisons);
    assert_close(rates[0].ratio.median, 0.25);
}

/// An attempt of an external generator, as it writes it: a number of responses, and nothing else.
fn external() -> Files {
    let mut files = files(MS, MS, 1);
    let planned = &files.load.phases[0].outcome;
    let total = &planned.total;
    let outcome = Outcome {
        phase: Phase { rate: Rate::Closed, ..planned.phase },
        start_wall_ms: START_WALL_MS,
        measured_ns: planned.measured_ns,
        total: Interval {
            planned: total.completed,
            sent: total.completed,
            completed: total.completed,
            ..Interval::default()
        },
        ..Outcome::default()
    };
    files.load.phases = vec![PhaseResult::of(&outcome, "", None)];
    files
}

#[test]
fn an_external_generator_has_a_goodput_and_no_latencies() {
    let mut fixture = Fixture::new(vec![case(0, "redis", PhaseKind::Command)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, external());
    let report = fixture.report();
    assert_close(report.figures[0].goodput_per_s.median, 1_000.0);
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    assert!(report.wrk2.is_empty(), "{:?}", report.wrk2);
}

/// The generator counts statuses up to 399 as success, too.
#[test]
fn redirects_are_goodput_and_a_maximum() {
    let cases = vec![case(0, "kvant", PhaseKind::Closed), case(1, "kvant", PhaseKind::Hold)];
    let mut fixture = Fixture::new(cases);
    let redirected = |rate| {
        let mut files = files(MS, 8 * MS, 1);
        let outcome = &mut files.load.phases[0].outcome;
        outcome.phase.rate = rate;
        outcome.total.ops[0].statuses = vec![(304, outcome.total.completed)];
        files
    };
    fixture.attempt(0, 1, AttemptVerdict::Valid, redirected(Rate::Closed));
    fixture.attempt(1, 1, AttemptVerdict::Valid, redirected(Rate::Constant(1_000.0)));
    let report = fixture.report();
    report.figures.iter().for_each(|figures| assert_close(figures.goodput_per_s.median, 1_000.0));
    let saturated = report.observations.iter().find(|one| one.rule == "saturated").unwrap();
    assert!(saturated.text.en.contains("held at 100 % of the maximum"), "{saturated:?}");
}

#[test]
fn a_disturbed_step_of_a_search_that_failed_is_on_no_curve() {
    let points = |disturbance: Option<String>| {
        let mut files = search(Some(5_000.0), 5_150.0);
        files.load.find_max.as_mut().unwrap().points[1].disturbance = disturbance;
        let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::FindMax)]);
        fixture.attempt(0, 1, AttemptVerdict::Valid, files);
        fixture.report().curves[0].points.iter().map(|point| point.holds).collect::<Vec<_>>()
    };
    assert_eq!(points(None), [Some(true), Some(false)]);
    assert_eq!(points(Some("others".to_owned())), [Some(true)]);
}

#[test]
fn a_curve_and_the_law_are_of_successful_responses() {
    let mut fixture = Fixture::new(Vec::new());
    fixture.run.sweep.push(Axis { name: "connections".to_owned(), ..Axis::default() });
    for (id, connections) in (0..).zip([1_u64, 2, 4, 8]) {
        let cell = vec![connections.to_string()];
        fixture.run.cases.push(Case { cell, ..case(id, "kvant", PhaseKind::Closed) });
        let mut files = files(MS, 8 * MS, 1);
        let phase = &mut files.load.phases[0];
        phase.outcome.phase.rate = Rate::Closed;
        // 10 more a second for each connection; the others are refused.
        phase.outcome.total.errors.status = 2_000 - 20 * connections;
        fixture.attempt(id, 1, AttemptVerdict::Valid, files);
    }
    let curves = fixture.report().curves;
    assert_close(curves[3].points[0].achieved_per_s, 80.0);
    let law = curves[0].usl.unwrap();
    assert_close(law.lambda, 10.0);
    assert!(law.sigma < 0.01, "{law:?}");
}

/// The files of an attempt with responses of `response_ns`, which are all lateness of the generator
/// unless they are the server's.
fn held(response_ns: u64, is_server: bool) -> Files {
    let mut files = files(response_ns, response_ns, 10 * MS);
    let phase = &mut files.load.phases[0];
    let mut verdict = kvant_load::verdict::judge(&phase.outcome);
    verdict.shares = vec![kvant_load::verdict::Share {
        percent: 50.0,
        response_ns,
        generator_ns: if is_server { 0 } else { response_ns },
        is_server,
    }];
    phase.verdict = Some(verdict);
    files
}

#[test]
fn the_verdict_names_no_percentile_that_is_the_generators() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, held(MS, false));
    let verdict = &fixture.report().verdict[0].en;
    assert_eq!(verdict, "kvant, get, hold at 1,000/s: 10.0 us of CPU a request.");
}

#[test]
fn a_percentile_is_not_that_of_the_attempts_in_which_the_server_was_slow() {
    let p99_ms = |attempts: &[(u64, bool)]| {
        let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
        for (repeat, (response_ns, is_server)) in (1..).zip(attempts) {
            let files = held(*response_ns, *is_server);
            fixture.attempt(0, repeat, AttemptVerdict::Valid, files);
        }
        let figures = fixture.report().figures.remove(0);
        let (_, p99) = figures.response_ns.into_iter().find(|(name, _)| name == "p99")?;
        Some((p99.median / MS as f64).round())
    };
    // The generator hides what the server takes in its fast attempts.
    assert_eq!(p99_ms(&[(MS, false), (30 * MS, true), (MS, false)]), None);
    assert_eq!(p99_ms(&[(MS, false), (30 * MS, true)]), None);
    assert_eq!(p99_ms(&[(2 * MS, true), (30 * MS, true), (MS, false)]), Some(2.0));
}

#[test]
fn attempts_that_were_cut_short_are_not_said_to_count() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, MS, 1));
    let cut = AttemptVerdict::CutShort("the run was ended".to_owned());
    fixture.attempt(0, 2, cut, files(MS, MS, 1));
    let verdict = fixture.report().verdict;
    let said = verdict.iter().any(|text| text.en.starts_with("1 of 2 attempts count"));
    assert!(said, "{verdict:?}");
}
