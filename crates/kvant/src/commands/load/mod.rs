//! `kvant load`: the load generator's command line, and what connects it with kvant-load.
//!
//! - [`definition`]: options, as clap has them.
//! - [`reader`], [`settings`]: values taken out of it and judged, all bad ones at once.
//! - [`signals`]: one signal ends the load, a second one the process.

pub(crate) mod definition;
mod facts;
mod fill;
mod judgement;
mod outputs;
mod reader;
mod run;
mod search;
mod settings;
mod signals;
mod sources;

use clap::ArgMatches;
use fill::FillSettings;
use kvant_base::Result;
use settings::LoadSettings;
use signals::Stop;

/// Runs the command; the result is the exit code.
pub(crate) fn load(args: &ArgMatches) -> u8 {
    match args.subcommand() {
        None => judged(LoadSettings::read(args), |settings, stop| {
            run::run(&settings, stop)
        }),
        Some(("fill", args)) => judged(FillSettings::read(args), fill::fill),
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
        Err(problems) => return refuse(&problems),
    };
    let done = signals::run(move |stop| {
        work(settings, &stop).unwrap_or_else(|error| {
            crate::complain(&error.to_string());
            crate::EXIT_FAILED
        })
    });
    done.unwrap_or_else(|error| {
        crate::complain(&error.to_string());
        crate::EXIT_FAILED
    })
}

/// Says everything that is wrong with the command line.
fn refuse(problems: &[String]) -> u8 {
    let count = problems.len();
    let mut text = format!(
        "{count} {} refused:",
        if count == 1 {
            "argument is"
        } else {
            "arguments are"
        }
    );
    for problem in problems {
        text.push_str(&format!("\n  {problem}"));
    }
    crate::complain(&text);
    crate::EXIT_USAGE
}
