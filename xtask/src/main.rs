//! Kvant's own chores, run as `cargo xtask NAME`: the rules of the house, the README's examples,
//! long tests, benchmarks.
//!
//! A chore is a module with a `run` that returns a [`Verdict`]. Arguments are few, so they are
//! parsed by hand in [`args`]. Findings go to standard output, a closing line last; what kept a
//! chore from running goes to standard error.
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]
#![allow(clippy::print_stdout, reason = "printing is what these chores are for")]

mod args;
mod bench;
mod cargo;
mod hlog_check;
mod profile_check;
mod profile_soak;
mod readme;
mod server;
mod tidy;
mod torture;

use std::process::ExitCode;

const HELP: &str = "\
Kvant's chores. Usage: cargo xtask NAME

  tidy                              check the rules of the house: crate and module order, file sizes,
                                    banned calls, dropped results, unsafe, markdown, licences
  readme [--release]                run the README's examples against a real server and compare their output
  torture [--cycles N] [--seed S]   kill -9 and power-loss tests, N cycles (1000) each, in release mode
  torture brim [--minutes N] [--seed S]
                                    fill, empty and refill a small file system beside a program that fills it,
                                    for N minutes (10); as root, for it mounts one
  torture mutate [--count N] [--seed S]
                                    N random mutations (1000) of data directories against verify, open and repair
  soak [--minutes M] [--seed S]     torture in rounds with a new seed each, until M minutes (60) have passed
  profile-soak [--minutes M] [--seed S]
                                    the profiler on and off in a loop, in a server under load, for M minutes (60);
                                    needs Python 3
  hlog-check [RUN.hlog RUN.json [RUN.hgrm]]
                                    have the files of `kvant load` read by HdrHistogram's Python library and
                                    a JSON Schema validator (from PyPI), and compare; needs Python 3
  profile-check [--release]         profile a server under load, have a browser and programs from npm read the
                                    files, and compare; needs Node.js, npm and Chromium
  bench [NAME [ARG]...]             run a benchmark; without a name, list them
";

/// What a chore comes to: `Ok(true)` passed, `Ok(false)` found something and has printed it, `Err`
/// could not be run.
type Verdict = Result<bool, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match arguments.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("help", &[][..]),
    };
    let verdict = match name {
        "tidy" => args::none(rest).and_then(|()| tidy::run()),
        "readme" => readme::run(rest),
        "torture" => torture::run(rest),
        "soak" => torture::soak(rest),
        "profile-soak" => profile_soak::run(rest),
        "hlog-check" => hlog_check::run(rest),
        "profile-check" => profile_check::run(rest),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(true)
        }
        other => Err(format!("there is no chore {other:?}; `cargo xtask` lists them")),
    };
    match verdict {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("xtask {name}: {problem}");
            ExitCode::from(2)
        }
    }
}
