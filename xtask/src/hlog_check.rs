//! `cargo xtask hlog-check`: what `kvant load` writes, read by programs that are not ours.
//!
//! HdrHistogram's Python library merges the interval log and must come to the histograms of the
//! JSON result, count by count; percentiles must follow from them; a validator holds the JSON
//! against its schema. Both come from PyPI in pinned versions, into an environment of their own
//! below `target/`. Without files, those of a made-up run are checked; with them, a real run's.

use crate::{Verdict, cargo};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed. All versions are pinned, so that a run of today passes tomorrow.
const PACKAGES: &[&str] = &[
    "hdrhistogram==0.10.8",
    "pbr==7.1.3",
    "setuptools==84.2.1",
    "jsonschema==4.26.0",
    "jsonschema-specifications==2025.9.1",
    "referencing==0.37.0",
    "attrs==26.1.0",
    "rpds-py==2026.9.1",
    "typing_extensions==4.16.0",
];

/// `[RUN.hlog RUN.json [RUN.hgrm]]`.
pub(crate) fn run(arguments: &[String]) -> Verdict {
    let dir = cargo::target_dir()?.join("hlog-check");
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let files: Vec<PathBuf> = match arguments {
        [] => made_up_run(&dir)?,
        [_, _] | [_, _, _] => arguments.iter().map(PathBuf::from).collect(),
        _ => return Err("give no file, or RUN.hlog RUN.json [RUN.hgrm]".to_owned()),
    };
    let python = environment(&dir)?;
    let status = Command::new(python)
        .arg(cargo::root().join("xtask/src/hlog_check.py"))
        .arg(cargo::root().join("docs/load-result.schema.json"))
        .args(files)
        .status();
    let status = status.map_err(|error| format!("python: {error}"))?;
    println!("hlog-check: {}", if status.success() { "passed" } else { "failed" });
    Ok(status.success())
}

/// The files of the example, which prints them as one JSON object.
fn made_up_run(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut example = cargo::cargo();
    example.args(["run", "--quiet", "--package", "kvant-load", "--example", "result_files"]);
    let text = cargo::stdout_of(&mut example)?;
    let files: Value =
        serde_json::from_slice(&text).map_err(|error| format!("result_files: {error}"))?;
    let names = [("hlog", "run.hlog"), ("result", "run.json"), ("hgrm", "run.hgrm")];
    let write = |(key, name): (&str, &str)| {
        let text = files[key].as_str().ok_or_else(|| format!("result_files printed no {key}"))?;
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    names.into_iter().map(write).collect()
}

/// Python with the packages; made when there is none with these versions.
fn environment(dir: &Path) -> Result<PathBuf, String> {
    let python = dir.join("python/bin/python");
    let stamp = dir.join("python/packages");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    cargo::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(dir.join("python")))
        .map_err(|error| {
            format!("{error}; it needs Python 3 with venv (Debian: apt-get install python3-venv)")
        })?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "--no-deps",
    ];
    cargo::run(Command::new(&python).args(pip).args(PACKAGES))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}
