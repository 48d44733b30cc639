//! `cargo xtask torture` and `cargo xtask soak`: the tests that get better with time, in release mode, with a
//! seed that replays.
//!
//! The tests are the same as in `cargo test`; they take the number of cycles and the seed from the
//! environment. A cycle is one kill -9; the engine's tests repeat in proportion, once for every 20 cycles.

mod brim;

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
    Long {
        package: "kvant",
        filter: "kill_nine",
    },
    Long {
        package: "kvant-engine",
        filter: "power_loss",
    },
    Long {
        package: "kvant-engine",
        filter: "model",
    },
];

/// `[--cycles N] [--seed S]`, or the name of a torture of its own with its arguments.
pub(crate) fn run(arguments: &[String]) -> Verdict {
    if let Some(("brim", rest)) = arguments.split_first().map(|(name, rest)| (name.as_str(), rest)) {
        return brim::run(rest);
    }
    let given = args::numbers(arguments, &["cycles", "seed"])?;
    let cycle_count = given.get("cycles").copied().unwrap_or(CYCLES_DEFAULT);
    let seed = given.get("seed").copied().unwrap_or_else(seed_of_the_day);
    round(cycle_count, seed)
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
            .env("KVANT_TORTURE_CYCLES", cycle_count.to_string())
            .env("KVANT_TEST_SEED", seed.to_string());
        println!("torture: {}", cargo::shown(&command));
        let passed_count = passed_tests(&mut command)?;
        match passed_count {
            Some(0) => {
                return Err(format!(
                    "no test of {} is called {}: nothing was tested",
                    test.package, test.filter
                ));
            }
            Some(_) => {}
            None => {
                println!("torture: failed; again: cargo xtask torture --cycles {cycle_count} --seed {seed}");
                return Ok(false);
            }
        }
    }
    println!("torture: passed, seed {seed}");
    Ok(true)
}

/// Runs a test command with its output shown; the number of tests that passed, or `None` when it failed.
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

/// The number in the test runner's closing line, `test result: ok. 3 passed; ...`; 0 for any other line.
fn passed_in(line: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["test", "result:", "ok.", count, "passed;", ..] => count.parse().unwrap_or(0),
        _ => 0,
    }
}

/// A seed that differs from run to run; it is printed, so that the run can be repeated.
fn seed_of_the_day() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}

#[cfg(test)]
mod tests;
