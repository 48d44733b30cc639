//! `--find-max`: the highest rate that meets its objectives.

use super::facts::Done;
use super::judgement::EXIT_BROKEN;
use super::run::Run;
use crate::exit::print;
use kvant_base::Result;
use kvant_load::assertion::Assertion;
use kvant_load::find_max::{self, Attempt, FindMax, FindMaxConfig, Limit, Means, Point};
use kvant_load::report::json::FindMaxFacts;
use kvant_load::report::progress::clock;
use kvant_load::units::format_time_ns;
use kvant_load::{Outcome, Phase};

/// Searches; prints each phase after its evaluation, and then the result; returns the exit code.
pub(super) fn run(mut run: Run<'_>, goals: &[Assertion]) -> Result<u8> {
    let settings = run.settings;
    let config = FindMaxConfig { settle: settings.warmup, measure: settings.duration };
    print(run.header())?;
    print(title(goals))?;
    let mut printed = Ok(());
    let mut phases: Vec<Done> = Vec::new();
    let mut purposes = Vec::new();
    let found = {
        let mut run_phase = |phase: &Phase, attempt: &Attempt| {
            run.set_note(note(attempt));
            // The number of phases depends on their outcomes.
            let done = run.phase(phase, 0, 1)?;
            let outcome = done.outcome.clone();
            phases.push(done);
            Ok(outcome)
        };
        let means = Means {
            run: &mut run_phase,
            slo: &|outcome| broken(goals, outcome),
            each_point: &mut |point| {
                purposes.push(point.purpose.name());
                let line = print(row(point));
                if printed.is_ok() {
                    printed = line;
                }
            },
        };
        find_max::find_max(config, means)?
    };
    printed?;
    for (done, purpose) in phases.iter_mut().zip(purposes) {
        done.label = purpose.to_owned();
    }
    print(result(&found))?;
    // Assertions are about the load that the server is meant to carry, not about the search.
    let mut first_judged = phases.len();
    if found.at_80.is_some()
        && let Some(last) = phases.last()
    {
        print("\nAt 80 % of it:\n")?;
        run.print_phase(last)?;
        first_judged -= 1;
    }
    let facts = FindMaxFacts::of(&found, &texts(goals));
    let exit_code = run.finish(&phases, first_judged, Some(facts))?;
    if found.rate.is_none() && !found.is_cut_short {
        return Ok(EXIT_BROKEN);
    }
    Ok(exit_code)
}

/// `[bisection, 1:40 left] `.
fn note(attempt: &Attempt) -> String {
    format!("[{}, {} left] ", attempt.purpose.name(), clock(attempt.time_left))
}

fn texts(goals: &[Assertion]) -> Vec<String> {
    goals.iter().map(|goal| goal.text().to_owned()).collect()
}

/// The objectives that a phase did not meet, a sentence each.
fn broken(goals: &[Assertion], outcome: &Outcome) -> Vec<String> {
    let checked = goals.iter().map(|goal| goal.check(outcome, None));
    checked.filter(|checked| !checked.is_met).map(|checked| checked.to_string()).collect()
}

fn title(goals: &[Assertion]) -> String {
    format!(
        "Highest rate that holds {}\n  {:<12} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n",
        texts(goals).join(", "),
        "phase",
        "rate",
        "achieved",
        "p50",
        "p99",
        "p99.9",
        "max",
        "lag p99",
        "holds"
    )
}

fn row(point: &Point) -> String {
    let rate = if point.rate > 0.0 { format!("{:.0}", point.rate) } else { "closed".to_owned() };
    let mut line = format!("  {:<12} {rate:>10} {:>10.0}", point.purpose.name(), point.achieved);
    for ns in [point.p50_ns, point.p99_ns, point.p999_ns, point.max_ns, point.send_lag_p99_ns] {
        line += &format!(" {:>9}", format_time_ns(ns));
    }
    let why = if point.rate <= 0.0 {
        String::new()
    } else if point.judgement.holds() {
        "yes".to_owned()
    } else {
        let reasons = point.judgement.reasons.join("; ");
        match &point.disturbance {
            Some(what) => format!("no: {reasons}; disturbed: {what}"),
            None => format!("no: {reasons}"),
        }
    };
    format!("{line}  {why}\n")
}

fn result(found: &FindMax) -> String {
    let what = match found.rate {
        Some(rate) if found.is_confirmed => format!("{rate:.0} requests/sec hold, confirmed twice"),
        Some(rate) => format!("{rate:.0} requests/sec held, not confirmed"),
        None => match found.curve().first() {
            Some(lowest) => format!("no rate holds, down to {} requests/sec", short(lowest.rate)),
            None => "no rate holds".to_owned(),
        },
    };
    let interrupted = if found.is_cut_short { " (interrupted)" } else { "" };
    let limit = match &found.limit {
        Some(Limit { rate, reasons, generator: None }) if *rate <= 0.0 => reasons.join("; "),
        Some(Limit { rate, reasons, generator: None }) => {
            format!("the server was the limit: at {}, {}", short(*rate), reasons.join("; "))
        }
        Some(Limit { rate, reasons, generator: Some(how) }) => {
            format!(
                "the generator was the limit, the server may do more: at {rate:.0}, {how}; {}",
                reasons.join("; ")
            )
        }
        None => "nothing failed up to the highest rate that was tried".to_owned(),
    };
    let mut text = format!(
        "\nMaximum: {what}{interrupted}\n  closed loop: {:.0} requests/sec\n  {limit}\n",
        found.saturation_rate
    );
    let disturbed = found.disturbed_count();
    if disturbed > 0 {
        text += &format!(
            "  the machine was disturbed in {disturbed} of {} phases; those that failed were repeated, as far as there \
             are repeats\n",
            found.points.len()
        );
    }
    text
}

/// A rate with its significant digits.
fn short(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}
