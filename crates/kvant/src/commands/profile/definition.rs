//! The command line of `kvant profile`, one row an option.

use super::parse;
use crate::commands::option::{About, file, option, words};
use clap::{Arg, Command, ValueHint, value_parser};
use kvant_profiler::render::Format;
use std::ffi::OsString;

const ABOUT: &str = "Profile a running server: CPU time, allocations, locks and waits";

const LONG_ABOUT: &str = "Profile a running server: CPU time, allocations, locks and waits, with time stamps and with what each thread was \
    working on.\n\nThe server records itself; what is written is a page that shows flame graphs and heat maps (.html), the recording (.kprof), \
    or what other tools read (.pb.gz for pprof, .collapsed for flame graphs). SIGINT ends a recording early and writes what there is; a second \
    one ends the process. docs/profiling.md says how to read the pictures.";

const AFTER_HELP: &str = "Exit codes: 0 done; 1 the server cannot be reached or records already, or a file cannot be read or written; 2 wrong \
    usage; 130 a second SIGINT.";

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
        .args([
            option("url", "URL", parse::URL, parse::server)
                .value_hint(ValueHint::Url)
                .about("The server; with --admin-listen, that address"),
            option("event", "EVENT,...", "", parse::events)
                .about("What to record: cpu, alloc, lock [default: all three]"),
            option("duration", "T", "30s", parse::time)
                .short('d')
                .about("For how long: 100ms to 1h, or seconds without a unit"),
            option("rate", "HZ", "", parse::rate_hz)
                .about("CPU samples a second of CPU time [default: 99]"),
            words("engine", &parse::ENGINES, "", parse::engine).about(
                "How CPU time is sampled: `perf` shows functions of the kernel, where the system permits it, and costs more \
                 [default: timer]",
            ),
            file("output").short('o').about(
                "What to write; `-` is standard output [default: profile, the recording's name, or difference, with the ending of the format, or .html]",
            ),
            words("format", &Format::NAMES, "", parse::format)
                .about("Its format [default: what the output's name ends with]"),
            words("kind", &parse::KINDS, "", parse::kind).about(
                "Which samples collapsed stacks are made of [default: that of the only event recorded; of lock: contention]",
            ),
            file("diff")
                .value_name("BASE")
                .about("Show what has changed from the recording BASE to FILE"),
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(OsString))
                .value_hint(ValueHint::FilePath)
                .help("A recording (.kprof) to read instead of making one"),
        ])
}
