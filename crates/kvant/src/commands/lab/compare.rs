//! `kvant lab compare`: a plan as a comparison of two sides.

use super::run::{place, run_plan};
use crate::exit::EXIT_USAGE;
use clap::ArgMatches;
use kvant_lab::comparison::assertion::RatioAssertion;
use kvant_lab::plan::Plan;
use kvant_lab::record::ComparisonFacts;

/// Compares two sides; returns the exit code.
pub(super) fn compare(args: &ArgMatches) -> u8 {
    let text =
        |id: &str| args.get_one::<String>(id).cloned().expect("clap requires or defaults it");
    let assertions: Vec<String> =
        args.get_many::<String>("assert").into_iter().flatten().cloned().collect();
    let problems = assertions.iter().filter_map(|text| RatioAssertion::parse(text).err());
    let mut problems: Vec<String> = problems.map(|problem| format!("--assert {problem}")).collect();
    let facts = ComparisonFacts { a: text("A"), b: text("B"), assertions };
    let block_count = args.get_one("blocks").copied().expect("it has a default");
    let plan = match Plan::open(&text("plan")) {
        Ok(plan) => plan.compare(facts, block_count).map_err(|problem| problems.push(problem)),
        Err(problem) => {
            crate::complain(&problem.to_string());
            return crate::EXIT_FAILED;
        }
    };
    match plan {
        Ok(plan) if problems.is_empty() => {
            let place = place(args, &plan);
            run_plan(args, plan, place)
        }
        _ => {
            problems.iter().for_each(|problem| crate::complain(problem));
            EXIT_USAGE
        }
    }
}
