//! The `kvant` binary: command line, settings, log and wiring.
//!
//! - [`cli`]: the command line, defined once.
//! - [`settings`]: the settings of `serve`, from flags, environment and file.
//! - [`log`]: one line per event on standard error.
//! - [`commands`]: one file per command.
//! - [`exit`]: exit codes and error messages.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

mod cli;
mod commands;
mod exit;
mod log;
mod settings;

use clap::ArgMatches;
use exit::{EXIT_FAILED, complain, finish, refuse, write_stdout};
use settings::{Config, Host, SETTINGS, Sources};
use std::process::ExitCode;

/// Samples allocations while a profile is recorded; otherwise it only checks one counter.
#[cfg(feature = "profiler")]
#[global_allocator]
static ALLOCATOR: kvant_profiler::collect::Allocator = kvant_profiler::collect::Allocator::new();

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
        "explain" => ExitCode::from(commands::explain::explain(args)),
        "lab" => ExitCode::from(commands::lab::lab(args)),
        "db" => db(args),
        "man" => finish(commands::generate::man(
            cli::command(),
            args.get_one("DIR").map(std::path::PathBuf::as_path),
        )),
        "completions" => {
            let shell = *args.get_one("SHELL").expect("clap requires a shell");
            finish(commands::generate::completions(cli::command(), shell))
        }
        "docs" => finish(write_stdout(settings::markdown().as_bytes())),
        other => unreachable!("`{other}` is not in the definition of the command line"),
    }
}

fn serve(args: &ArgMatches) -> ExitCode {
    let config = match read_settings(args) {
        Ok(config) => config,
        Err(problems) => return ExitCode::from(refuse("setting", &problems)),
    };
    if args.get_flag("print-config") {
        return finish(write_stdout(settings::print_config(&config).as_bytes()));
    }
    ExitCode::from(commands::serve::serve(&config))
}

fn db(args: &ArgMatches) -> ExitCode {
    let (name, args) = args.subcommand().expect("clap requires a command");
    let result = if cli::opens_database(name) {
        match read_settings(args) {
            Ok(config) if name == "copy" => {
                commands::copy::run(args, &config.settings).and_then(exit::print).map(|()| 0)
            }
            Ok(config) => commands::db::run_open(name, args, &config.settings).map(|()| 0),
            Err(problems) => return ExitCode::from(refuse("setting", &problems)),
        }
    } else {
        commands::db::run(name, args)
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let advice = commands::db::advice(name, &error)
                .map(|advice| format!(": {advice}"))
                .unwrap_or_default();
            complain(&format!("{error}{advice}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The settings from the flags in `args`, the environment and the file.
#[expect(clippy::disallowed_methods, reason = "settings come from the environment")]
fn read_settings(args: &ArgMatches) -> Result<Config, Vec<String>> {
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
