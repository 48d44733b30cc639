//! `kvant lab explain --intervene`: a plan as an experiment that makes suspects happen.

use super::run::{Place, path, run_plan};
use crate::exit::EXIT_USAGE;
use clap::ArgMatches;
use kvant_env::host;
use kvant_lab::plan::Plan;
use kvant_lab::record::{InterventionFacts, Suspect};

/// Makes suspects happen, and writes the report; returns the exit code.
pub(super) fn intervene(args: &ArgMatches) -> u8 {
    let name: &String = args.get_one("plan").expect("it has a default");
    let block_count = args.get_one("blocks").copied().expect("it has a default");
    let plan = match Plan::open(name) {
        Ok(plan) => plan,
        Err(problem) => {
            crate::complain(&problem.to_string());
            return crate::EXIT_FAILED;
        }
    };
    let suspects = match args.get_many::<String>("suspects") {
        None => plan.suspects(),
        Some(names) => {
            let mut chosen: Vec<Suspect> =
                names.filter_map(|name| Suspect::from_name(name)).collect();
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        }
    };
    let facts = InterventionFacts::new(suspects);
    match plan.intervene(facts, block_count) {
        Ok(plan) => {
            let dir = path(args, "DIR");
            let resumes = host::is_file(&dir.join("run.json"));
            run_plan(args, plan, Place { dir, resumes })
        }
        Err(problem) => {
            crate::complain(&problem);
            EXIT_USAGE
        }
    }
}
