//! `kvant lab`: experiments as one command, on top of kvant-lab.
//!
//! - [`definition`]: the command line.
//! - [`run`]: runs a plan; the first signal ends the run, the second one the process. [`compare`]
//!   makes a plan a comparison.
//! - [`explain`]: explanations of its attempts; [`intervene`] makes a plan an experiment with
//!   suspects of slow requests.
//! - [`what_if`] makes a plan an experiment that asks what faster stages would bring.
//! - [`report`]: the report of a run; [`summary`]: its figures on standard output.

mod compare;
pub(crate) mod definition;
mod explain;
mod intervene;
mod report;
mod run;
mod summary;
mod what_if;

use crate::exit::print;
use clap::ArgMatches;
use kvant_base::Result;
use kvant_lab::plan;
use report::write_report;
use run::{exit_code, path};

/// Runs the command; returns the exit code.
pub(crate) fn lab(args: &ArgMatches) -> u8 {
    let (name, args) = args.subcommand().expect("clap requires a command");
    match name {
        "run" => run::run(args),
        "compare" => compare::compare(args),
        "report" => exit_code(write_report(&path(args, "DIR"), run::language(args))),
        "explain" if args.get_flag("intervene") => intervene::intervene(args),
        "explain" => exit_code(explain::explain(args).map(|()| 0)),
        "what-if" => what_if::what_if(args),
        "list" => exit_code(list().map(|()| 0)),
        other => unreachable!("`{other}` is not in the definition of the command line"),
    }
}

/// Prints the names and titles of the plans that come with the program.
fn list() -> Result<()> {
    let row = |plan: &plan::Shipped| format!("{:<16} {}\n", plan.name, plan.title);
    print(plan::shipped().iter().map(row).collect::<String>())
}
