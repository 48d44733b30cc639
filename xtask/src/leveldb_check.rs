//! `cargo xtask leveldb-check`: exchanges a directory with Google's LevelDB.
//!
//! The library as Google built its API, in the package plyvel from PyPI, creates a database; a
//! server with `--engine leveldb` serves and changes it; the library reads, compacts and repairs
//! what the server left. Every step compares all records.

use crate::hlog_check;
use crate::process::{self, Verdict};
use crate::server::Server;
use clap::{ArgMatches, Command};
use std::path::Path;

/// The Python package, in pinned versions.
const REQUIREMENTS: &str = "leveldb_check.requirements.txt";

pub(crate) fn command() -> Command {
    Command::new("leveldb-check")
        .about("Exchange a directory of `--engine leveldb` with Google's LevelDB. Needs Python 3")
        .arg(process::release_flag())
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let python = hlog_check::python_with("leveldb-check", REQUIREMENTS)?;
    let binary = process::build_kvant(matches)?.join("kvant");
    let work = process::empty_dir("leveldb-check/work")?;
    let script = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&python);
        command.arg(process::root().join("xtask/src/leveldb_check.py")).args(arguments);
        process::run(command.current_dir(&work))
    };
    let passed = exchange(&binary, &work, &script);
    println!("leveldb-check: {}", if passed.is_ok() { "passed" } else { "failed" });
    passed.map(|()| true)
}

fn exchange(
    binary: &Path,
    work: &Path,
    script: &dyn Fn(&[&str]) -> Result<(), String>,
) -> Result<(), String> {
    script(&["make", "data"])?;
    let mut server = Server::start(binary, work, &["--engine", "leveldb", "--data", "data"])?;
    script(&["change", "data", &format!("http://{}", server.address)])?;
    server.stop()?;
    script(&["check", "data"])
}
