//! `cargo xtask profile-soak`: switches the profiler on and off in a loop, in a server under load.
//! `profile_soak.py` describes the load and the checks.

use crate::process::{self, Verdict, number};
use clap::{ArgMatches, Command};

pub(crate) fn command() -> Command {
    Command::new("profile-soak")
        .about("Switch the profiler on and off in a server under load; needs Python 3")
        .arg(number("minutes", "How long it runs").default_value("60"))
        .arg(number("seed", "Seed of the run").default_value("1"))
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let value = |name| matches.get_one::<u64>(name).copied().unwrap_or_default().to_string();
    process::run(process::cargo().args(["build", "--release", "--bin", "kvant"]))?;
    let mut python = std::process::Command::new("python3");
    python
        .arg(process::root().join("xtask/src/profile_soak.py"))
        .arg(process::target_dir()?.join("release/kvant"))
        .args([value("minutes"), value("seed")]);
    Ok(python.status().map_err(process::about("python3"))?.success())
}
