//! `cargo xtask bench engine [ARG]...`: measures the engine by `bench/engine`. Everything else that
//! is measured is a plan of the lab: `kvant lab list`.

use crate::process::{self, Verdict};
use clap::{Arg, ArgMatches, Command};

pub(crate) fn command() -> Command {
    let arguments = Arg::new("ARG").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    let engine = Command::new("engine")
        .about("Memory, read cost, space amplification and recovery: a command each")
        .disable_help_flag(true)
        .arg(arguments);
    Command::new("bench")
        .about("Measure the engine of the release build (servers: `kvant lab run bench-cpu`)")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(engine)
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let (_, matches) = matches.subcommand().expect("clap requires a command");
    process::run(process::cargo().args(["build", "--release", "--bin", "kvant"]))?;
    let line = ["run", "--release", "--manifest-path", "bench/engine/Cargo.toml", "--"];
    let arguments = matches.get_many::<String>("ARG").into_iter().flatten();
    process::run(process::cargo().args(line).args(arguments))?;
    Ok(true)
}
