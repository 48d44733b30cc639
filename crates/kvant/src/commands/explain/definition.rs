//! The command line of `kvant explain`, one row an option.

use super::parse;
use crate::commands::option::{About, file, flag, option};
use clap::{Command, ValueHint};

const ABOUT: &str = "Explain what was slow in the last minutes of a running server, and why";

const LONG_ABOUT: &str = "Explain what was slow in the last minutes of a running server, and why.\n\nThe server keeps its history (`kvant \
    serve --history`). Of each operation and percentile, what lies above the undisturbed level is shared out over what the requests waited \
    for: write stalls, fsyncs, block reads, other requests, clients, the machine; and over what they coincide with more than by chance. The \
    rest stays unexplained. The ten slowest requests are told one by one. docs/explain.md describes the method.";

const AFTER_HELP: &str = "Exit codes: 0 done; 1 the server cannot be reached or keeps no history, or a file cannot be written; 2 wrong usage.";

pub(crate) fn command() -> Command {
    Command::new("explain")
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .after_help(AFTER_HELP)
        .args_override_self(true)
        .args([
            option("url", "URL", parse::URL, parse::url)
                .value_hint(ValueHint::Url)
                .about("The server; with --admin-listen, that address"),
            option("last", "D", "", parse::last)
                .about("How much of the past, such as 5m or 90s [default: all that the server keeps]"),
            option("at", "TIME", "", parse::at)
                .conflicts_with("last")
                .about("The minute that begins at this time of day in UTC, such as 14:03, with one before and one after it"),
            file("output").short('o').about("A page to write, which loads nothing"),
            flag("json").about("Print the explanation as JSON instead of text"),
        ])
}
