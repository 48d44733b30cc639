//! `cargo xtask torture brim`: a server on a small file system that is filled, emptied and filled again,
//! by itself and by another program.
//!
//! The test is that of `cargo test`, which mounts the file system and ends everything it has started; here
//! it runs for minutes, in release mode.

use super::{passed_tests, seed_of_the_day};
use crate::{Verdict, args, cargo};

const MINUTES_DEFAULT: u64 = 10;

/// `[--minutes N] [--seed S]`.
pub(super) fn run(arguments: &[String]) -> Verdict {
    let given = args::numbers(arguments, &["minutes", "seed"])?;
    let minutes = given.get("minutes").copied().unwrap_or(MINUTES_DEFAULT);
    let seed = given.get("seed").copied().unwrap_or_else(seed_of_the_day);
    let mut command = cargo::cargo();
    command
        .args(["test", "--release", "--package", "kvant", "--test", "it", "brim::"])
        .args(["--", "--nocapture"])
        .env("KVANT_BRIM_MINUTES", minutes.to_string())
        .env("KVANT_TEST_SEED", seed.to_string());
    println!("torture: {}", cargo::shown(&command));
    match passed_tests(&mut command)? {
        Some(0) => Err("no test of kvant is called brim: nothing was tested".to_string()),
        Some(_) => {
            println!("torture: passed, seed {seed}");
            Ok(true)
        }
        None => {
            println!("torture: failed; again: cargo xtask torture brim --minutes {minutes} --seed {seed}");
            Ok(false)
        }
    }
}
