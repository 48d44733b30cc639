//! `kvant load`: the load generator's command line, and what connects it with kvant-load.
//!
//! - [`definition`]: options, as clap has them.
//! - [`settings`]: values taken out of it by the [reader](super::reader) and judged, all bad ones
//!   at once.
//! - [`signals`]: one signal ends the load, a second one the process.
//! - [`run`]: phases of load, from [`sources`], printed and written to [`outputs`], the JSON as
//!   [`facts`] has it.
//! - [`own_profile`]: what the generator itself did meanwhile.
//! - [`search`]: the highest rate; [`judgement`]: assertions and the exit code; [`fill`]: filling a
//!   store.

pub(crate) mod definition;
mod facts;
mod fill;
mod judgement;
mod outputs;
#[cfg(feature = "profiler")]
mod own_profile;
mod run;
mod search;
mod settings;
mod signals;
mod sources;
mod watchdog;

use clap::ArgMatches;
use fill::FillSettings;
use kvant_base::Result;
use kvant_load::compare;
use kvant_load::report::json::ResultFile;
use settings::LoadSettings;
use signals::Stop;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

/// Runs the command; the result is the exit code.
pub(crate) fn load(args: &ArgMatches) -> u8 {
    match args.subcommand() {
        None => judged(LoadSettings::read(args), |settings, stop| run::run(&settings, stop)),
        Some(("fill", args)) => {
            judged(FillSettings::read(args), |settings, stop| fill::fill(&settings, stop))
        }
        Some(("compare", args)) => done(compare(args)),
        Some((other, _)) => unreachable!("`{other}` is not in the definition of the command line"),
    }
}

/// Works with settings, unless they are refused.
fn judged<S: Send + 'static>(
    settings: std::result::Result<S, Vec<String>>,
    work: fn(S, &Stop) -> Result<u8>,
) -> u8 {
    let settings = match settings {
        Ok(settings) => settings,
        Err(problems) => return crate::refuse("argument", &problems),
    };
    done(signals::run(move |stop| done(work(settings, &stop))))
}

/// The exit code; says what went wrong.
fn done(result: std::result::Result<u8, impl Display>) -> u8 {
    result.unwrap_or_else(|error| {
        crate::complain(&error.to_string());
        crate::EXIT_FAILED
    })
}

/// Two results side by side. Whatever comes out is no failure: `--baseline` is for that.
fn compare(args: &ArgMatches) -> Result<u8> {
    let file =
        |id: &str| Path::new(args.get_one::<OsString>(id).expect("clap requires the argument"));
    let [a, b] = [file("A"), file("B")];
    let names = [a.to_string_lossy(), b.to_string_lossy()];
    let comparison =
        compare::compare(&ResultFile::read(a)?, &ResultFile::read(b)?, [&names[0], &names[1]])?;
    outputs::print(&comparison.to_string())?;
    Ok(0)
}
