//! The command line of `kvant profile`. Values are taken as they are: [`super::settings`] judges
//! all of them together.

use crate::cli::Suggested;
use clap::builder::ValueParser;
use clap::{Arg, Command, ValueHint, value_parser};
use std::ffi::OsString;

const ABOUT: &str = "Profile a running server: CPU time, allocations, locks and waits";

const LONG_ABOUT: &str = "Profile a running server: CPU time, allocations, locks and waits, with time stamps and with what each thread was \
    working on.\n\nThe server records itself; what is written is a page that shows flame graphs and heat maps (.html), the recording (.kprof), \
    or what other tools read (.pb.gz for pprof, .collapsed for flame graphs). SIGINT ends a recording early and writes what there is; a second \
    one ends the process. docs/profiling.md says how to read the pictures.";

const AFTER_HELP: &str = "Exit codes: 0 done; 1 the server cannot be reached or records already, or a file cannot be read or written; 2 wrong \
    usage; 130 a second SIGINT.";

/// Where a server listens unless told.
pub(super) const URL: &str = "http://127.0.0.1:8080";
pub(super) const FORMATS: [&str; 4] = ["html", "kprof", "pprof", "collapsed"];
pub(super) const ENGINES: [&str; 2] = ["timer", "perf"];
pub(super) const KINDS: [&str; 8] =
    ["cpu", "alloc", "contention", "idle", "backpressure", "io", "scheduler", "holder"];

/// The command.
pub(crate) fn command() -> Command {
    Command::new("profile")
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .after_help(AFTER_HELP)
        .args_override_self(true)
        .override_usage(
            "kvant profile [OPTIONS] [-o FILE]\n       kvant profile [--format FORMAT] FILE.kprof [-o FILE]\n       \
             kvant profile --diff BASE.kprof OTHER.kprof [-o FILE.html]",
        )
        .arg(
            option("url", "URL", "The server; with --admin-listen, that address [default: http://127.0.0.1:8080]")
                .value_hint(ValueHint::Url),
        )
        .arg(option("event", "EVENT,...", "What to record: cpu, alloc, lock [default: all three]"))
        .arg(option("duration", "T", "For how long: 100ms to 1h, or seconds without a unit [default: 30s]").short('d'))
        .arg(option("rate", "HZ", "CPU samples a second of CPU time [default: 99]"))
        .arg(words(
            "engine",
            &ENGINES,
            "How CPU time is sampled: `perf` shows functions of the kernel, where the system permits it, and costs more \
             [default: timer]",
        ))
        .arg(
            option(
                "output",
                "FILE",
                "What to write; `-` is standard output [default: profile.html, the recording's name with .html, or difference.html]",
            )
            .short('o')
            .value_hint(ValueHint::FilePath),
        )
        .arg(words("format", &FORMATS, "Its format [default: what the output's name ends with]"))
        .arg(words("kind", &KINDS, "Which samples collapsed stacks are made of [default: that of the only event recorded; of lock: contention]"))
        .arg(
            option("diff", "BASE", "Show what has changed from the recording BASE to FILE")
                .value_hint(ValueHint::FilePath),
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(OsString))
                .value_hint(ValueHint::FilePath)
                .help("A recording (.kprof) to read instead of making one"),
        )
}

fn option(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).value_name(value).value_parser(value_parser!(OsString)).help(help)
}

/// An option whose words the shell completes.
fn words(id: &'static str, words: &'static [&'static str], help: &'static str) -> Arg {
    option(id, "WORD", help)
        .value_name(words.join("|"))
        .value_parser(ValueParser::new(Suggested(words.to_vec())))
        .hide_possible_values(true)
}
