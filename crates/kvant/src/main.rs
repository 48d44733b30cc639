//! The `kvant` binary: command line, settings, log and wiring.
//!
//! - [`cli`]: the command line, defined once.
//! - [`settings`]: what `serve` can be told, from flags, environment and file.
//! - [`log`]: one line an event on standard error.
//! - [`commands`]: one file a command.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

mod cli;
mod commands;
mod log;
mod settings;

use clap::ArgMatches;
use commands::db::Verdict;
use settings::{Config, Host, Problem, SETTINGS, Sources};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Looks at some allocations while a profile is recorded, and else only at one number.
#[cfg(feature = "profiler")]
#[global_allocator]
static ALLOCATOR: kvant_profiler::collect::Allocator = kvant_profiler::collect::Allocator::new();

/// Bad settings or usage.
const EXIT_USAGE: u8 = 2;
/// The command was understood and failed.
const EXIT_FAILED: u8 = 1;
/// A database was repaired, and not all of it could be saved.
const EXIT_LOST: u8 = 3;

fn main() -> ExitCode {
    if let Err(error) = kvant_env::posix::ignore_file_size_signal() {
        complain(&format!("cannot ignore SIGXFSZ: {error}"));
    }
    let matches = cli::command().get_matches();
    let (name, args) = matches.subcommand().expect("clap requires a command");
    match name {
        "serve" => serve(args),
        "load" => ExitCode::from(commands::load::load(args)),
        "profile" => ExitCode::from(commands::profile::profile(args)),
        "db" => db(args),
        "man" => finish(commands::generate::man(
            cli::command(),
            args.get_one("DIR").map(std::path::PathBuf::as_path),
        )),
        "completions" => {
            let shell = *args.get_one("SHELL").expect("clap requires a shell");
            finish(commands::generate::completions(cli::command(), shell))
        }
        "docs" => finish(io::stdout().write_all(settings::markdown().as_bytes())),
        planned => {
            complain(&format!("`kvant {planned}` does not exist yet"));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn serve(args: &ArgMatches) -> ExitCode {
    let config = match read_settings(args) {
        Ok(config) => config,
        Err(problems) => return ExitCode::from(refuse("setting", &problems)),
    };
    if args.get_flag("print-config") {
        return finish(io::stdout().write_all(settings::print_config(&config).as_bytes()));
    }
    ExitCode::from(commands::serve::serve(&config))
}

fn db(args: &ArgMatches) -> ExitCode {
    let (name, args) = args.subcommand().expect("clap requires a command");
    let result = if cli::opens_database(name) {
        match read_settings(args) {
            Ok(config) => {
                commands::db::run_open(name, args, &config.settings).map(|()| Verdict::Whole)
            }
            Err(problems) => return ExitCode::from(refuse("setting", &problems)),
        }
    } else {
        commands::db::run(name, args)
    };
    match result {
        Ok(Verdict::Whole) => ExitCode::SUCCESS,
        Ok(Verdict::Damaged) => ExitCode::from(EXIT_FAILED),
        Ok(Verdict::Lost) => ExitCode::from(EXIT_LOST),
        Err(error) => {
            let advice = commands::db::advice(&error)
                .map(|advice| format!(": {advice}"))
                .unwrap_or_default();
            complain(&format!("{error}{advice}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The settings that the flags in `args`, the environment and the file give.
#[expect(clippy::disallowed_methods, reason = "settings come from the environment")]
fn read_settings(args: &ArgMatches) -> Result<Config, Vec<Problem>> {
    let raw = |name: &str| args.try_get_one::<std::ffi::OsString>(name).ok().flatten().cloned();
    let sources = Sources {
        flags: SETTINGS
            .iter()
            .filter_map(|setting| Some((setting.name, raw(setting.name)?)))
            .collect(),
        config: raw("config"),
        env: std::env::vars_os().collect(),
        read_file: &kvant_env::host::read_text,
    };
    let host = Host {
        memory_bytes: kvant_env::host::memory_bytes(),
        cpu_count: kvant_env::host::cpu_count(),
    };
    settings::read(&sources, &host)
}

/// Says everything that is wrong with what was given, each a `noun`; returns the exit code.
fn refuse(noun: &str, problems: &[impl Display]) -> u8 {
    let count = problems.len();
    let mut text = match count {
        1 => format!("1 {noun} is refused:"),
        _ => format!("{count} {noun}s are refused:"),
    };
    for problem in problems {
        text.push_str(&format!("\n  {problem}"));
    }
    complain(&text);
    EXIT_USAGE
}

/// The exit code of a command that only writes. A reader that has seen enough (`kvant man | head`)
/// is no failure.
fn finish(written: io::Result<()>) -> ExitCode {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&error.to_string());
            ExitCode::from(EXIT_FAILED)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Says on standard error why the command is not done.
fn complain(text: &str) {
    if writeln!(io::stderr(), "kvant: {text}").is_err() {
        // The exit code still tells.
    }
}
