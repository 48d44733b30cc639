//! `cargo xtask torture` and `cargo xtask soak`: randomized tests, in release mode unless asked
//! otherwise, with more cycles than `cargo test` has time for and a seed that replays them.
//!
//! The tests read the number of cycles and the seed from the environment.

use crate::cluster;
use crate::process::{self, Verdict, number};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

struct Torture {
    name: &'static str,
    about: &'static str,
    /// Packages, each with a module of its `tests/it/`.
    tests: &'static [(&'static str, &'static str)],
    /// The option that says how long the tests run, its default, and the variable that the tests
    /// read.
    option: &'static str,
    default: u64,
    variable: &'static str,
    /// Nodes of a cluster that the tests need.
    node_count: u8,
}

const TORTURES: &[Torture] = &[
    Torture {
        name: "torture",
        about: "Run the kill -9, power-loss and model tests; one power loss for every 20 kills",
        tests: &[("kvant", "kill_nine"), ("kvant-engine", "power_loss"), ("kvant-engine", "model")],
        option: "cycles",
        default: 1_000,
        variable: "KVANT_TORTURE_CYCLES",
        node_count: 0,
    },
    Torture {
        name: "brim",
        about: "Fill, empty and refill a small file system beside a program that fills it; as root",
        tests: &[("kvant", "brim")],
        option: "minutes",
        default: 10,
        variable: "KVANT_BRIM_MINUTES",
        node_count: 0,
    },
    Torture {
        name: "mutate",
        about: "Test verify, open and repair on randomly damaged data directories",
        tests: &[("kvant-engine", "mutations")],
        option: "count",
        default: 1_000,
        variable: "KVANT_MUTATIONS",
        node_count: 0,
    },
    Torture {
        name: "lab",
        about: "End runs of the lab by signals, killed servers, SIGKILL and a full disk; as root",
        tests: &[("kvant", "lab_endings")],
        option: "moments",
        default: 10,
        variable: "KVANT_LAB_MOMENTS",
        node_count: 0,
    },
    Torture {
        name: "cluster",
        about: "Kill, pause and cut off nodes of a cluster under load; needs what `cluster up` needs",
        tests: &[("kvant", "cluster_faults")],
        option: "faults",
        default: 3,
        variable: "KVANT_CLUSTER_FAULTS",
        node_count: 3,
    },
];

/// Cycles of one round of a soak: minutes, so that the soak ends soon after its time.
const SOAK_CYCLES: u64 = 100;

pub(crate) fn command() -> Command {
    let command = |torture: &Torture| {
        Command::new(torture.name)
            .about(torture.about)
            .arg(
                number(torture.option, "How long it runs")
                    .default_value(torture.default.to_string()),
            )
            .arg(number("seed", "Seed of the run [default: the time]"))
            .arg(
                Arg::new("dev")
                    .long("dev")
                    .action(ArgAction::SetTrue)
                    .help("Use the build of `cargo test`, which checks more and is slower"),
            )
    };
    command(&TORTURES[0])
        .args_conflicts_with_subcommands(true)
        .subcommands(TORTURES[1..].iter().map(command))
}

pub(crate) fn soak_command() -> Command {
    Command::new("soak")
        .about("Run torture in rounds, each with a new seed")
        .arg(number("minutes", "How long it runs").default_value("60"))
        .arg(number("seed", "Seed of the first round [default: the time]"))
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let (name, matches) = matches.subcommand().unwrap_or((TORTURES[0].name, matches));
    let torture = TORTURES.iter().find(|torture| torture.name == name);
    let torture = torture.expect("clap accepts only these names");
    let value = matches.get_one(torture.option).copied().unwrap_or(torture.default);
    let round = Round { torture, value, seed: seed_of(matches), is_dev: matches.get_flag("dev") };
    match torture.node_count {
        0 => round.run(),
        count => with_cluster(count, &round),
    }
}

/// A run of the tests of a torture.
struct Round {
    torture: &'static Torture,
    value: u64,
    seed: u64,
    /// Not in release mode.
    is_dev: bool,
}

/// Runs a torture on a cluster of its own, in a network of its own: it breaks both.
fn with_cluster(node_count: u8, round: &Round) -> Verdict {
    if !cluster::is_isolated() {
        for (package, _) in round.torture.tests {
            process::run(round.cargo_test(package).arg("--no-run"))?;
        }
        return cluster::isolated();
    }
    cluster::with(node_count, false, || round.run())
}

pub(crate) fn soak(matches: &ArgMatches) -> Verdict {
    let minutes: u64 = matches.get_one("minutes").copied().unwrap_or_default();
    let start = Instant::now();
    let mut seed = seed_of(matches);
    while start.elapsed() < Duration::from_secs(60 * minutes) {
        let round = Round { torture: &TORTURES[0], value: SOAK_CYCLES, seed, is_dev: false };
        if !round.run()? {
            return Ok(false);
        }
        seed += 1;
    }
    Ok(true)
}

impl Round {
    /// The tests of a package. In the build of `cargo test`, those of all packages: for one alone,
    /// the driver of the cluster and the crates above it are built anew, with other features.
    fn cargo_test(&self, package: &str) -> std::process::Command {
        let mut test = process::cargo();
        test.args(["test", "--test", "it"]);
        if !self.is_dev {
            test.args(["--release", "--package", package]);
        }
        test
    }

    /// Runs all tests, and prints how to repeat the run.
    fn run(&self) -> Verdict {
        let Round { torture, value, seed, is_dev } = self;
        let Torture { name, tests, option, variable, node_count, .. } = torture;
        let subcommand = if *name == "torture" { String::new() } else { format!(" {name}") };
        let dev = if *is_dev { " --dev" } else { "" };
        let repeat =
            format!("cargo xtask torture{subcommand} --{option} {value} --seed {seed}{dev}");
        for (package, module) in *tests {
            let mut test = self.cargo_test(package);
            test.args([&format!("{module}::"), "--", "--nocapture"])
                .env(variable, value.to_string())
                .env("KVANT_TEST_SEED", seed.to_string());
            if *node_count > 0 {
                let program = std::env::current_exe().map_err(process::about("this program"))?;
                test.arg("--ignored");
                test.env("KVANT_TEST_CLUSTER_DIR", cluster::dir()?).env("KVANT_XTASK", program);
            }
            println!("torture: {}", process::shown(&test));
            if !test.status().map_err(process::about("cargo"))?.success() {
                println!("torture: failed: {repeat}");
                return Ok(false);
            }
        }
        println!("torture: passed: {repeat}");
        Ok(true)
    }
}

/// The given seed, or one that differs from run to run.
fn seed_of(matches: &ArgMatches) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    matches.get_one("seed").copied().unwrap_or(now.as_secs())
}

#[cfg(test)]
mod tests;
