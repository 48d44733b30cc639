//! `kvant load`: the load generator's command line, on top of kvant-load.
//!
//! - [`definition`]: one row an option, with its parser of [`parse`].
//! - [`settings`]: the values and the checks between them.
//! - [`run`]: connects to the [`targets`] and runs phases with requests from [`sources`]; prints
//!   and writes to [`outputs`], JSON by way of [`facts`].
//! - [`watchdog`]: assertions checked during the load; [`judgement`]: at its end, and the exit
//!   code.
//! - [`own_profile`]: a profile of the generator.
//! - [`search`]: the highest rate; [`fill`]: filling a store.

pub(crate) mod definition;
mod facts;
mod fill;
mod judgement;
mod outputs;
#[cfg(feature = "profiler")]
mod own_profile;
mod parse;
mod run;
mod search;
mod settings;
mod sources;
mod targets;
mod watchdog;

use super::signals::{self, EXIT_INTERRUPTED, Stop};
use crate::exit::print;
use clap::ArgMatches;
use fill::FillSettings;
use kvant_base::Result;
use kvant_load::compare;
use kvant_load::report::json::ResultFile;
use run::Run;
use settings::{LoadPlan, LoadSettings};
use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

/// Runs the command; returns the exit code.
pub(crate) fn load(args: &ArgMatches) -> u8 {
    match args.subcommand() {
        None => run_with(LoadSettings::read(args), |settings, stop| run_load(&settings, stop)),
        Some(("fill", args)) => {
            run_with(FillSettings::read(args), |settings, stop| fill::fill(&settings, stop))
        }
        Some(("compare", args)) => exit_code(compare(args)),
        Some((other, _)) => unreachable!("`{other}` is not in the definition of the command line"),
    }
}

/// Runs `work` with the settings, unless they are refused.
fn run_with<S: Send + 'static>(
    settings: std::result::Result<S, Vec<String>>,
    work: fn(S, &Stop) -> Result<u8>,
) -> u8 {
    let settings = match settings {
        Ok(settings) => settings,
        Err(problems) => return crate::refuse("argument", &problems),
    };
    let ended = signals::run(move |stop| exit_code(work(settings, stop)));
    exit_code(ended.map(|code| code.unwrap_or(EXIT_INTERRUPTED)))
}

/// Runs the load that `settings` describe; returns the exit code.
fn run_load(settings: &LoadSettings, stop: &Stop) -> Result<u8> {
    let run = Run::start(settings, stop)?;
    match &settings.plan {
        LoadPlan::Steps(rates) => run.steps(rates),
        LoadPlan::FindMax(slo) => search::run(run, slo),
    }
}

/// The exit code; reports an error.
fn exit_code(result: std::result::Result<u8, impl Display>) -> u8 {
    result.unwrap_or_else(|error| {
        crate::complain(&error.to_string());
        crate::EXIT_FAILED
    })
}

/// Prints two results side by side. A difference is not a failure: `--baseline` is for that.
fn compare(args: &ArgMatches) -> Result<u8> {
    let file =
        |id: &str| Path::new(args.get_one::<OsString>(id).expect("clap requires the argument"));
    let [a, b] = [file("A"), file("B")];
    let names = [a.to_string_lossy(), b.to_string_lossy()];
    let comparison =
        compare::compare(&ResultFile::read(a)?, &ResultFile::read(b)?, [&names[0], &names[1]]);
    print(comparison.to_string())?;
    Ok(0)
}
