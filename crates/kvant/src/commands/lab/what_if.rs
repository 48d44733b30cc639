//! `kvant lab what-if`: a plan as an experiment that asks what faster stages would bring.

use super::run::run_experiment;
use clap::ArgMatches;
use kvant_base::tag::Stage;
use kvant_lab::record::WhatIfFacts;

/// Slows everything but single stages down, and writes the report; returns the exit code.
pub(super) fn what_if(args: &ArgMatches) -> u8 {
    run_experiment(args, |plan, block_count| {
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
        plan.what_if(WhatIfFacts { stages, percents }, block_count)
    })
}
