//! Comparisons of two sides from run directories.

use super::*;
use crate::comparison::assertion::{Decision, Figure};
use crate::model::{Compared, Sides};
use crate::record::ComparisonFacts;

/// A run of 8 blocks; `b` has the files of B by repeat.
fn compared(assertions: &[&str], b: impl Fn(u32) -> (AttemptVerdict, Files)) -> Sides {
    report_of(PhaseKind::Hold, 16, assertions, || files(MS, 8 * MS, 100 * MS), b).sides.unwrap()
}

/// The report of a run of a kind of phases; `a` has the files of A.
fn report_of(
    kind: PhaseKind,
    repeats: u32,
    assertions: &[&str],
    a: impl Fn() -> Files,
    b: impl Fn(u32) -> (AttemptVerdict, Files),
) -> Report {
    let mut fixture = Fixture::new(vec![case(0, "A", kind), case(1, "B", kind)]);
    fixture.run.repeats = repeats;
    fixture.run.comparison = Some(ComparisonFacts {
        a: "this".to_owned(),
        b: "workers=4".to_owned(),
        assertions: assertions.iter().map(|text| (*text).to_owned()).collect(),
    });
    for repeat in 1..=repeats {
        fixture.attempt(0, repeat, AttemptVerdict::Valid, a());
        let (verdict, files) = b(repeat);
        fixture.attempt(1, repeat, verdict, files);
    }
    fixture.report()
}

fn figure(sides: &Sides, figure: Figure) -> &Compared {
    sides.figures.iter().find(|one| one.figure == figure).unwrap()
}

#[test]
fn blocks_show_what_differs_and_what_does_not() {
    let assertions = ["cpu <= 1.05x", "cpu <= 1.2x", "p50 <= 1x", "put: cpu <= 2x"];
    let sides = compared(&assertions, |_| (AttemptVerdict::Valid, files(MS, 8 * MS, 110 * MS)));
    assert_eq!(sides.block_count, 8);
    let cpu = figure(&sides, Figure::Cpu);
    assert_close(cpu.ratio.unwrap(), 1.1);
    assert_eq!((cpu.block_count, cpu.is_b_better()), (8, Some(false)));
    assert_eq!(cpu.claim().en, "B is worse");
    let median = figure(&sides, Figure::P50);
    assert_eq!(median.difference(), None);
    assert!(median.claim().en.starts_with("no difference; 0."), "{:?}", median.claim());
    let decisions: Vec<Decision> = sides.assertions.iter().map(|one| one.decision).collect();
    let [violated, undecided] = [Decision::Violated, Decision::Undecided];
    assert_eq!(decisions, [violated, Decision::Holds, undecided, undecided]);
    assert_eq!(sides.decision(), violated);
    // 2 of 2,000 responses decide about it.
    assert!(sides.figures.iter().all(|one| one.figure != Figure::P999));
}

/// The files of a side that refuses a half of the requests.
fn half_refused(fast_ns: u64) -> Files {
    let mut files = files(fast_ns, 8 * MS, 100 * MS);
    let total = &mut files.load.phases[0].outcome.total;
    total.errors.status = total.completed / 2;
    files
}

#[test]
fn a_side_that_refuses_a_half_has_half_the_rate_and_twice_the_cost_of_a_request() {
    let assertions = ["rate >= 0.98x", "cpu <= 1.02x"];
    let sides = compared(&assertions, |_| (AttemptVerdict::Valid, half_refused(MS)));
    assert_close(figure(&sides, Figure::Rate).ratio.unwrap(), 0.5);
    assert_close(figure(&sides, Figure::Cpu).ratio.unwrap(), 2.0);
    assert_close(figure(&sides, Figure::Written).ratio.unwrap(), 2.0);
    let decisions: Vec<Decision> = sides.assertions.iter().map(|one| one.decision).collect();
    assert_eq!(decisions, [Decision::Violated; 2]);
}

/// Regression: to refuse is quick, and made a side look fast.
#[test]
fn no_low_latency_is_claimed_of_the_side_that_succeeds_less_often() {
    let assertions = ["p99 <= 1.05x", "p50 <= 0.9x", "p50 >= 0.1x"];
    let decisions =
        |sides: &Sides| sides.assertions.iter().map(|one| one.decision).collect::<Vec<Decision>>();
    let sides = compared(&assertions, |_| (AttemptVerdict::Valid, half_refused(MS)));
    let [holds, violated, undecided] = [Decision::Holds, Decision::Violated, Decision::Undecided];
    assert_eq!(decisions(&sides), [undecided, violated, holds]);
    let claim = figure(&sides, Figure::P99).claim().en;
    assert_eq!(
        claim,
        "nothing is claimed: 0.0 % of the requests to A failed, 50.0 % of those to B"
    );

    let b = |_| (AttemptVerdict::Valid, half_refused(MS / 2));
    let sides = compared(&assertions, b);
    assert_eq!(decisions(&sides), [undecided, undecided, holds]);
    assert_eq!(figure(&sides, Figure::P50).is_b_better(), None);
    assert_eq!(figure(&sides, Figure::Rate).is_b_better(), Some(false));

    // Both refuse alike, or the slower one refuses: as ever.
    let a = || half_refused(MS);
    let sides = report_of(PhaseKind::Hold, 16, &assertions, a, b).sides.unwrap();
    assert_eq!(decisions(&sides), [holds; 3]);
    let b = |_| (AttemptVerdict::Valid, files(MS / 2, 8 * MS, 100 * MS));
    let sides = report_of(PhaseKind::Hold, 16, &assertions, a, b).sides.unwrap();
    assert_eq!(decisions(&sides), [holds, holds, undecided]);
    assert_eq!(figure(&sides, Figure::P50).is_b_better(), Some(true));
}

/// Regression: it said that no figure had enough blocks.
#[test]
fn the_verdict_says_that_nothing_is_claimed_of_a_side_that_refuses_all() {
    let all_refused = |_| {
        let mut files = half_refused(MS / 2);
        let total = &mut files.load.phases[0].outcome.total;
        total.errors.status = total.completed;
        (AttemptVerdict::Valid, files)
    };
    let a = || files(MS, 8 * MS, 100 * MS);
    let report = report_of(PhaseKind::Hold, 16, &[], a, all_refused);
    assert_eq!(report.sides.unwrap().claimed().count(), 0);
    let expected = "Nothing is claimed: 0.0 % of the requests to A failed, 100.0 % of those to B.";
    assert_eq!(report.verdict[0].en, expected);
}

#[test]
fn the_maximum_is_shown_and_not_claimed() {
    let sides = compared(&[], |_| (AttemptVerdict::Valid, files(MS, 80 * MS, 100 * MS)));
    let max = figure(&sides, Figure::Max);
    assert_close(max.ratio.unwrap(), 10.0);
    assert_eq!((max.interval, max.claim().en.as_str()), (None, "nothing is claimed"));
    assert_eq!(sides.decision(), Decision::Holds);
}

#[test]
fn a_block_counts_only_as_a_whole() {
    let sides = compared(&["cpu <= 2x"], |repeat| {
        let disturbed = AttemptVerdict::Disturbed("stolen".to_owned());
        let verdict = if repeat == 5 { disturbed } else { AttemptVerdict::Valid };
        (verdict, files(MS, 8 * MS, 110 * MS))
    });
    let cpu = figure(&sides, Figure::Cpu);
    assert_eq!((cpu.block_count, cpu.interval), (7, None));
    assert_close(cpu.ratio.unwrap(), 1.1);
    assert_eq!(cpu.claim().en, "too few blocks");
    assert_eq!(sides.decision(), Decision::Undecided);
}

#[test]
fn latencies_at_different_rates_are_not_compared() {
    let sides = compared(&[], |_| {
        let mut files = files(MS, 8 * MS, 110 * MS);
        files.load.phases[0].outcome.phase.rate = Rate::Constant(900.0);
        (AttemptVerdict::Valid, files)
    });
    let median = figure(&sides, Figure::P50);
    assert_eq!((median.block_count, median.ratio), (0, None));
    assert_eq!(figure(&sides, Figure::Cpu).block_count, 8);
}

#[test]
fn of_searches_nothing_is_claimed_if_one_found_no_rate() {
    // One block more than an interval needs.
    let sides_of = |failed: Option<u32>| {
        let a = || search(Some(5_000.0), 5_150.0);
        report_of(PhaseKind::FindMax, 18, &["rate >= 1.1x"], a, |repeat| {
            let rate = (failed != Some(repeat)).then_some(6_000.0);
            (AttemptVerdict::Valid, search(rate, 6_200.0))
        })
        .sides
        .unwrap()
    };
    let all = sides_of(None);
    assert_eq!((figure(&all, Figure::Rate).block_count, all.decision()), (9, Decision::Holds));
    let but_one = sides_of(Some(7));
    let rate = figure(&but_one, Figure::Rate);
    assert_eq!((rate.block_count, rate.interval), (0, None));
    assert_eq!(but_one.decision(), Decision::Undecided);
}
