//! `cargo xtask hlog-check`: reads the files of `kvant load` with third-party programs.
//!
//! HdrHistogram's Python library merges the interval log and must arrive at the histograms of the
//! JSON result, count by count; percentiles must follow from them; a validator checks the JSON
//! against its schema. Both come from PyPI in pinned versions, into an environment of their own
//! below `target/`.

use crate::process::{self, Verdict};
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};

pub(crate) fn command() -> Command {
    let file = |name| Arg::new(name).value_parser(clap::value_parser!(PathBuf));
    Command::new("hlog-check")
        .about("Check files of `kvant load` with HdrHistogram's Python library and a JSON Schema validator")
        .long_about(
            "Check files of `kvant load` with HdrHistogram's Python library and a JSON Schema \
             validator: those of a made-up run, or those that are given. Needs Python 3.",
        )
        .args([file("RUN.hlog").requires("RUN.json"), file("RUN.json"), file("RUN.hgrm")])
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let given = ["RUN.hlog", "RUN.json", "RUN.hgrm"].map(|name| matches.get_one::<PathBuf>(name));
    let mut files: Vec<PathBuf> = given.into_iter().flatten().cloned().collect();
    if files.is_empty() {
        files = made_up_run()?;
    }
    let status = std::process::Command::new(python()?)
        .arg(process::root().join("xtask/src/hlog_check.py"))
        .arg(process::root().join("docs/load-result.schema.json"))
        .args(files)
        .status();
    let passed = status.map_err(process::about("python"))?.success();
    println!("hlog-check: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}

/// The files of an example of kvant-load.
fn made_up_run() -> Result<Vec<PathBuf>, String> {
    let dir = process::empty_dir("hlog-check/files")?;
    let files = process::json_of_example("kvant-load", "result_files")?;
    let names = [("hlog", "run.hlog"), ("result", "run.json"), ("hgrm", "run.hgrm")];
    let write = |(key, name): (&str, &str)| {
        let text = files[key].as_str().ok_or_else(|| format!("result_files printed no {key}"))?;
        let path = dir.join(name);
        process::write(&path, text).map(|()| path)
    };
    names.into_iter().map(write).collect()
}

/// A Python that has the packages of this check.
pub(crate) fn python() -> Result<PathBuf, String> {
    python_with("hlog-check", "hlog_check.requirements.txt")
}

/// A Python that has the packages of a file in this directory; installed below `target/NAME` if
/// there is none with these versions.
pub(crate) fn python_with(name: &str, requirements: &str) -> Result<PathBuf, String> {
    let requirements = process::root().join("xtask/src").join(requirements);
    let wanted = process::read(&requirements)?;
    let dir = process::target_dir()?.join(name).join("python");
    let (python, stamp) = (dir.join("bin/python"), dir.join("requirements"));
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    let command = |program: &Path, line: &str| {
        let mut command = std::process::Command::new(program);
        command.args(line.split(' '));
        command
    };
    process::run(command(Path::new("python3"), "-m venv --clear").arg(&dir)).map_err(|error| {
        format!("{error}; it needs Python 3 with venv (Debian: apt-get install python3-venv)")
    })?;
    let install =
        "-m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps -r";
    process::run(command(&python, install).arg(requirements))?;
    process::write(&stamp, wanted)?;
    Ok(python)
}
