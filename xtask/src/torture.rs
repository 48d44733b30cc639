//! `cargo xtask torture` and `cargo xtask soak`: the tests that get better with time, in release
//! mode, with a seed that replays.
//!
//! The tests are the same as in `cargo test`; they take the number of cycles and the seed from the
//! environment. A cycle is one kill -9; the engine's tests repeat in proportion, once for every 20
//! cycles.

use crate::{Verdict, args, cargo};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const CYCLES_DEFAULT: u64 = 1_000;
/// Cycles of one round of a soak: minutes, so that the end is not overrun by much.
const SOAK_CYCLES: u64 = 100;

/// A test of `crates/PACKAGE/tests/it/`, by a part of its name.
struct Long {
    package: &'static str,
    filter: &'static str,
}

const LONG_TESTS: &[Long] = &[
    Long { package: "kvant", filter: "kill_nine" },
    Long { package: "kvant-engine", filter: "power_loss" },
    Long { package: "kvant-engine", filter: "model" },
];

/// A torture that is asked for by name, and the number that says how long it is.
struct Named {
    name: &'static str,
    test: Long,
    number: &'static str,
    default: u64,
    variable: &'static str,
}

const NAMED_TESTS: &[Named] = &[
    // A server on a small file system that it and another program fill, empty and fill again.
    Named {
        name: "brim",
        test: Long { package: "kvant", filter: "brim::" },
        number: "minutes",
        default: 10,
        variable: "KVANT_BRIM_MINUTES",
    },
    // Random damage to data directories, against verify, an open and repair; prints what became of
    // it.
    Named {
        name: "mutate",
        test: Long { package: "kvant-engine", filter: "mutations" },
        number: "count",
        default: 1_000,
        variable: "KVANT_MUTATIONS",
    },
];

/// `[--cycles N] [--seed S]`, or a name of [`NAMED_TESTS`] with `[--NUMBER N] [--seed S]`.
pub(crate) fn run(arguments: &[String]) -> Verdict {
    if let [name, rest @ ..] = arguments
        && let Some(named) = NAMED_TESTS.iter().find(|named| named.name == name)
    {
        return run_named(named, rest);
    }
    let given = args::numbers(arguments, &["cycles", "seed"])?;
    let cycle_count = given.get("cycles").copied().unwrap_or(CYCLES_DEFAULT);
    let seed = given.get("seed").copied().unwrap_or_else(seed_of_the_day);
    round(cycle_count, seed)
}

fn run_named(named: &Named, arguments: &[String]) -> Verdict {
    let Named { name, number, .. } = *named;
    let given = args::numbers(arguments, &[number, "seed"])?;
    let value = given.get(number).copied().unwrap_or(named.default);
    let seed = given.get("seed").copied().unwrap_or_else(seed_of_the_day);
    println!("torture {name}: {value} {number}, seed {seed}");
    let passed = passes(&named.test, &[(named.variable, value), ("KVANT_TEST_SEED", seed)])?;
    let (end, again) = if passed { ("passed", "") } else { ("failed", "; again") };
    println!(
        "torture {name}: {end}{again}: cargo xtask torture {name} --{number} {value} --seed {seed}"
    );
    Ok(passed)
}

/// `[--minutes M] [--seed S]`.
pub(crate) fn soak(arguments: &[String]) -> Verdict {
    let given = args::numbers(arguments, &["minutes", "seed"])?;
    let duration = Duration::from_secs(60 * given.get("minutes").copied().unwrap_or(60));
    let mut seed = given.get("seed").copied().unwrap_or_else(seed_of_the_day);
    let start = Instant::now();
    while start.elapsed() < duration {
        if !round(SOAK_CYCLES, seed)? {
            return Ok(false);
        }
        seed += 1;
    }
    Ok(true)
}

/// Runs every long test, and says how to run what failed again.
fn round(cycle_count: u64, seed: u64) -> Verdict {
    println!("torture: {cycle_count} cycles, seed {seed}");
    for test in LONG_TESTS {
        if !passes(test, &[("KVANT_TORTURE_CYCLES", cycle_count), ("KVANT_TEST_SEED", seed)])? {
            println!(
                "torture: failed; again: cargo xtask torture --cycles {cycle_count} --seed {seed}"
            );
            return Ok(false);
        }
    }
    println!("torture: passed, seed {seed}");
    Ok(true)
}

/// Runs a long test with these variables.
fn passes(test: &Long, variables: &[(&str, u64)]) -> Verdict {
    let mut command = cargo::cargo();
    command
        .args([
            "test",
            "--release",
            "--package",
            test.package,
            "--test",
            "it",
            test.filter,
            "--",
            "--nocapture",
        ])
        .envs(variables.iter().map(|(name, value)| (name, value.to_string())));
    println!("torture: {}", cargo::shown(&command));
    match passed_tests(&mut command)? {
        Some(0) => Err(format!(
            "no test of {} is called {}: nothing was tested",
            test.package, test.filter
        )),
        passed => Ok(passed.is_some()),
    }
}

/// Runs a test command with its output shown; the number of tests that passed, or `None` when it
/// failed.
fn passed_tests(command: &mut Command) -> Result<Option<u64>, String> {
    let name = cargo::shown(command);
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let stdout = child.stdout.take().expect("standard output is piped");
    let mut passed_count = 0;
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(failed)?;
        println!("{line}");
        passed_count += passed_in(&line);
    }
    let status = child.wait().map_err(failed)?;
    Ok(status.success().then_some(passed_count))
}

/// The number in the test runner's closing line, `test result: ok. 3 passed; ...`; 0 for any other
/// line.
fn passed_in(line: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["test", "result:", "ok.", count, "passed;", ..] => count.parse().unwrap_or(0),
        _ => 0,
    }
}

/// A seed that differs from run to run; it is printed, so that the run can be repeated.
fn seed_of_the_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests;
