//! `kvant lab explain --intervene`: a plan as an experiment that makes suspects happen.

use super::run::run_experiment;
use clap::ArgMatches;
use kvant_lab::record::{InterventionFacts, Suspect};

/// Makes suspects happen, and writes the report; returns the exit code.
pub(super) fn intervene(args: &ArgMatches) -> u8 {
    run_experiment(args, |plan, block_count| {
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
        plan.intervene(InterventionFacts::new(suspects), block_count)
    })
}
