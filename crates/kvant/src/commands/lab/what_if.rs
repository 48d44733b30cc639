//! `kvant lab what-if`: a plan as an experiment that asks what faster stages would bring.

use super::run::{Place, path, run_plan};
use crate::exit::EXIT_USAGE;
use clap::ArgMatches;
use kvant_base::tag::Stage;
use kvant_env::host;
use kvant_lab::plan::Plan;
use kvant_lab::record::WhatIfFacts;

/// Slows everything but single stages down, and writes the report; returns the exit code.
pub(super) fn what_if(args: &ArgMatches) -> u8 {
    let name: &String = args.get_one("plan").expect("it has a default");
    let block_count = args.get_one("blocks").copied().expect("it has a default");
    let plan = match Plan::open(name) {
        Ok(plan) => plan,
        Err(problem) => {
            crate::complain(&problem.to_string());
            return crate::EXIT_FAILED;
        }
    };
    let mut stages: Vec<Stage> = match args.get_many::<String>("stages") {
        None => plan.stages(),
        Some(names) => names.filter_map(|name| Stage::from_name(name)).collect(),
    };
    let mut percents: Vec<u32> =
        args.get_many("spare").expect("it has a default").copied().collect();
    stages.sort_unstable();
    stages.dedup();
    percents.sort_unstable();
    percents.dedup();
    match plan.what_if(WhatIfFacts { stages, percents }, block_count) {
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
