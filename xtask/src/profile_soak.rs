//! `cargo xtask profile-soak`: the profiler on and off in a loop, in a server under load, for an
//! hour by default.
//!
//! What happens meanwhile and what is looked at, `profile_soak.py` says.

use crate::{Verdict, args, cargo};
use std::process::Command;

/// `[--minutes M] [--seed S]`.
pub(crate) fn run(arguments: &[String]) -> Verdict {
    let given = args::numbers(arguments, &["minutes", "seed"])?;
    let minutes = given.get("minutes").copied().unwrap_or(60);
    let seed = given.get("seed").copied().unwrap_or(1);
    cargo::run(cargo::cargo().args(["build", "--release", "--bin", "kvant"]))?;
    let status = Command::new("python3")
        .arg(cargo::root().join("xtask/src/profile_soak.py"))
        .arg(cargo::target_dir()?.join("release/kvant"))
        .args([minutes.to_string(), seed.to_string()])
        .status();
    Ok(status.map_err(|error| format!("python3: {error}"))?.success())
}
