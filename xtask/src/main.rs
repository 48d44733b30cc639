//! Kvant's own chores, run as `cargo xtask NAME`: rules that no compiler checks, the README's
//! examples, long tests, benchmarks.
//!
//! Findings go to standard output, a closing line last; the reason why a chore could not run goes
//! to standard error.
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]
#![allow(clippy::print_stdout, reason = "printing is what these chores are for")]

mod bench;
mod bench_cluster;
mod browser;
mod cluster;
mod cluster_check;
mod hlog_check;
mod lab_check;
mod lab_figures;
mod lab_theory;
mod leveldb_check;
mod process;
mod profile_check;
mod profile_soak;
mod readme;
mod server;
mod tidy;
mod torture;
mod what_if;

use clap::{ArgMatches, Command};
use process::Verdict;
use std::process::ExitCode;

/// A chore's command line, and the function that runs it.
type Chore = (fn() -> Command, fn(&ArgMatches) -> Verdict);

const CHORES: &[Chore] = &[
    (tidy::command, tidy::run),
    (readme::command, readme::run),
    (torture::command, torture::run),
    (torture::soak_command, torture::soak),
    (profile_soak::command, profile_soak::run),
    (hlog_check::command, hlog_check::run),
    (profile_check::command, profile_check::run),
    (lab_check::command, lab_check::run),
    (lab_figures::command, lab_figures::run),
    (lab_theory::command, lab_theory::run),
    (what_if::command, what_if::run),
    (cluster::command, cluster::run),
    (cluster_check::command, cluster_check::run),
    (leveldb_check::command, leveldb_check::run),
    (bench::command, bench::run),
];

fn main() -> ExitCode {
    let commands = CHORES.iter().map(|(command, _)| command());
    let matches = Command::new("cargo xtask")
        .about("Kvant's chores")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(commands)
        .get_matches();
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    let chore = CHORES.iter().find(|(command, _)| command().get_name() == name);
    let (_, run) = chore.expect("clap accepts only these commands");
    match run(matches) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("xtask {name}: {problem}");
            ExitCode::from(2)
        }
    }
}
