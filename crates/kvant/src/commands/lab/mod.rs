//! `kvant lab`: experiments as one command, on top of kvant-lab.
//!
//! - [`definition`]: the command line.
//! - [`run`]: runs a plan; the first signal ends the run, the second one the process.
//! - [`summary`]: the figures on standard output.

pub(crate) mod definition;
mod run;
mod summary;

use crate::exit::print;
use clap::ArgMatches;
use kvant_base::Result;
use kvant_lab::plan;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Runs the command; returns the exit code.
pub(crate) fn lab(args: &ArgMatches) -> u8 {
    let (name, args) = args.subcommand().expect("clap requires a command");
    match name {
        "run" => run::run(args),
        "report" => exit_code(write_report(&path(args, "DIR")).map(|()| 0)),
        "list" => exit_code(list().map(|()| 0)),
        other => unreachable!("`{other}` is not in the definition of the command line"),
    }
}

/// Writes what can be said of the run in `dir`: a table on standard output.
fn write_report(dir: &Path) -> Result<()> {
    print(summary::text(dir)?)
}

/// Prints the names and titles of the plans that come with the program.
fn list() -> Result<()> {
    let row = |plan: &plan::Shipped| format!("{:<16} {}\n", plan.name, plan.title);
    print(plan::shipped().iter().map(row).collect::<String>())
}

/// The exit code; reports an error.
fn exit_code(result: std::result::Result<u8, impl Display>) -> u8 {
    result.unwrap_or_else(|error| {
        crate::complain(&error.to_string());
        crate::EXIT_FAILED
    })
}

/// The value of a required argument.
fn path(args: &ArgMatches, id: &str) -> PathBuf {
    PathBuf::from(args.get_one::<OsString>(id).expect("clap requires the argument"))
}
