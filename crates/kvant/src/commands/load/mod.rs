//! `kvant load`: the load generator's command line, and what connects it with kvant-load.
//!
//! - [`definition`]: options, as clap has them.
//! - [`reader`], [`settings`]: values taken out of it and judged, all bad ones at once.
//! - [`signals`]: one signal ends the load, a second one the process.

pub(crate) mod definition;
mod reader;
mod settings;
mod signals;

use clap::ArgMatches;
use settings::LoadSettings;

/// Runs the command; the result is the exit code.
pub(crate) fn load(args: &ArgMatches) -> u8 {
    match LoadSettings::read(args) {
        Ok(_) => 0,
        Err(problems) => refuse(&problems),
    }
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
