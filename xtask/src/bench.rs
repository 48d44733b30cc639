//! `cargo xtask bench NAME [ARG]...`: starts a benchmark of `bench/`; `bench/README.md` says what
//! each measures.

use crate::process::{self, Verdict};
use clap::{Arg, ArgMatches, Command};

/// The name of each benchmark, the command that it runs in the root, and what it measures.
const BENCHES: &[(&str, &str, &str)] = &[
    (
        "servers",
        "python3 bench/servers/run.py",
        "CPU per request against a raw epoll loop, nginx, Redis, and one-nio with LevelDB",
    ),
    (
        "limits",
        "python3 bench/servers/limits.py",
        "breaking points against one-nio with LevelDB, 1,024 connections, overload, idle connections: a command each",
    ),
    (
        "engine",
        "cargo run --release --manifest-path bench/engine/Cargo.toml --",
        "memory, read cost, space amplification and recovery: a command each",
    ),
    (
        "load",
        "python3 bench/load/run.py",
        "the load generator: CPU per request against wrk, its own lateness, single-connection latency of Kvant",
    ),
];

pub(crate) fn command() -> Command {
    let arguments = Arg::new("ARG").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    let benches = BENCHES.iter().map(|(name, _, about)| {
        Command::new(name).about(about).disable_help_flag(true).arg(&arguments)
    });
    Command::new("bench")
        .about("Run a benchmark against the release build of kvant")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(benches)
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    let bench = BENCHES.iter().find(|(known, ..)| *known == name);
    let (_, line, _) = bench.expect("clap accepts only these names");
    process::run(process::cargo().args(["build", "--release", "--bin", "kvant"]))?;
    let mut words = line.split(' ');
    let mut command = std::process::Command::new(words.next().unwrap_or_default());
    let arguments = matches.get_many::<String>("ARG").into_iter().flatten();
    process::run(command.args(words).args(arguments).current_dir(process::root()))?;
    Ok(true)
}
