//! `cargo xtask lab-figures`: computes the figures of a report of `kvant lab` again, from the raw
//! files of its run and with HdrHistogram's Python library.

use crate::hlog_check;
use crate::process::{self, Verdict};
use clap::{Arg, ArgMatches, Command};
use std::path::PathBuf;

pub(crate) fn command() -> Command {
    Command::new("lab-figures")
        .about("Compute the figures of a report of `kvant lab` again from its raw files")
        .long_about(
            "Compute every figure of a report of `kvant lab` again, from the raw files and with \
             HdrHistogram's Python library: of the run in DIR, or of a short run that is made for \
             it. Needs Python 3.",
        )
        .arg(Arg::new("DIR").value_parser(clap::value_parser!(PathBuf)))
        .arg(process::release_flag())
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let dir = match matches.get_one::<PathBuf>("DIR") {
        Some(dir) => dir.clone(),
        None => short_run(matches)?,
    };
    let status = std::process::Command::new(hlog_check::python()?)
        .arg(process::root().join("xtask/src/lab_figures.py"))
        .arg(&dir)
        .status();
    let passed = status.map_err(process::about("python"))?.success();
    println!("lab-figures: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}

/// The directory of a short run.
fn short_run(matches: &ArgMatches) -> Result<PathBuf, String> {
    let dir = process::empty_dir("lab-figures")?.join("run");
    let mut lab = std::process::Command::new(process::build_kvant(matches)?.join("kvant"));
    lab.args(["lab", "run"]).arg(process::root().join("xtask/src/lab_figures.toml"));
    process::run(lab.arg("-o").arg(&dir))?;
    Ok(dir)
}
