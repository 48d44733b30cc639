//! `cargo xtask lab-check [--release]`: opens pages of the lab in a browser.
//!
//! Chromium, driven by Playwright's library, opens two sorts of pages:
//!
//! - of made-up reports: light and dark, wide and narrow, in both languages, without scripts. They
//!   must be small, soon drawn, load nothing, agree with sums of the report and of its recordings,
//!   and be usable by keys. Screenshots stay in `target/lab-check/pictures`.
//! - of the five seeds, in [`QUICK_S`] each: small, and with time lines on which a range can be
//!   selected.
//!
//! On a busy machine no attempt of a seed may count, and its page has no time line. Such a run is
//! opened a second time, as it would be if all attempts counted.

use crate::browser;
use crate::process::{self, Verdict, about};
use clap::ArgMatches;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SCRIPTS: &str = "crates/kvant-lab/tests/browser";
const SEEDS: [&str; 5] = ["seed-000", "seed-001", "seed-002", "seed-003", "seed-004"];
/// A seed's short form, which has a search, held rates and, where the seed has them, a closed loop,
/// a load beside another and an overload.
const QUICK_S: u32 = 40;
/// When a run is ended by SIGINT: disturbed attempts and builds come on top of the short form.
const RUN_MAX: Duration = Duration::from_secs(45);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn command() -> clap::Command {
    clap::Command::new("lab-check")
        .about("Check pages of the lab in a browser")
        .long_about(
            "Open pages of made-up reports in a browser and compare what they show with the \
             reports; run short forms of the seeds and open their reports. Needs Node.js, npm and \
             Chromium.",
        )
        .arg(process::release_flag())
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let kvant = process::build_kvant(matches)?.join("kvant");
    let files = process::empty_dir("lab-check/files")?;
    browser::files_of_example("kvant-lab", "lab_page", &files)?;
    let sources = [browser::PROFILER_SCRIPTS, SCRIPTS];
    let scripts = browser::scripts_with_packages("lab-check", &sources)?;
    let mut passed = browser::run_script(&scripts.join("lab.mjs"), &files)?;
    let runs = process::empty_dir("lab-check/runs")?;
    for seed in SEEDS {
        passed &= run_seed(&kvant, seed, &runs)?;
    }
    passed &= browser::run_script(&scripts.join("lab-runs.mjs"), &runs)?;
    println!("lab-check: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}

/// Runs the short form of a seed in a directory below `runs`; whether all attempts of Kvant ended.
fn run_seed(kvant: &Path, seed: &str, runs: &Path) -> Verdict {
    let dir = runs.join(seed);
    let mut lab = Command::new(kvant);
    lab.args(["lab", "run", "--quiet", seed, &format!("--quick={QUICK_S}"), "-o"]).arg(&dir);
    lab.current_dir(process::root()).stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let mut run = lab.spawn().map_err(about(process::shown(&lab)))?;
    let mut is_ended = false;
    // A run in which no attempt counts fails, with a report.
    while run.try_wait().map_err(about(seed))?.is_none() {
        if start.elapsed() > RUN_MAX && !is_ended {
            process::run(Command::new("kill").args(["-INT", &run.id().to_string()]))?;
            is_ended = true;
        }
        thread::sleep(POLL_INTERVAL);
    }
    let report = report(&dir)?;
    let is_of_kvant = |attempt: &&Value| {
        let case = attempt["case"].as_u64().unwrap_or(u64::MAX) as usize;
        report["run"]["cases"][case]["subject"] != "leveldb"
    };
    let attempts: Vec<&Value> =
        report["attempts"].as_array().into_iter().flatten().filter(is_of_kvant).collect();
    let with = |verdict: &str| {
        attempts.iter().filter(|one| one["verdict"]["verdict"] == verdict).copied().collect()
    };
    let (valid, failed): (Vec<&Value>, Vec<&Value>) = (with("valid"), with("failed"));
    println!(
        "{seed}: {} of {} attempts count, after {} s{}",
        valid.len(),
        attempts.len(),
        start.elapsed().as_secs(),
        if is_ended { ", ended" } else { "" }
    );
    failed.iter().for_each(|attempt| println!("  FAILED: {}", attempt["verdict"]["why"]));
    if report["time_lines"].as_array().is_none_or(Vec::is_empty) {
        copy_as_if_calm(kvant, &dir, &runs.join(format!("{seed}-as-if-calm")))?;
    }
    Ok(failed.is_empty() && !attempts.is_empty())
}

fn report(dir: &Path) -> Result<Value, String> {
    let path = dir.join("report.json");
    serde_json::from_str(&process::read(&path)?).map_err(about(path.display()))
}

/// Copies a run, lets its disturbed attempts count, and writes the report.
fn copy_as_if_calm(kvant: &Path, dir: &Path, copy: &Path) -> Result<(), String> {
    process::run(Command::new("cp").arg("-r").args([dir, copy]))?;
    let journal = copy.join("journal.jsonl");
    let mut lines = String::new();
    for line in process::read(&journal)?.lines() {
        let mut attempt: Value = serde_json::from_str(line).map_err(about(journal.display()))?;
        if attempt["verdict"]["verdict"] == "disturbed" {
            attempt["verdict"] = json!({ "verdict": "valid" });
        }
        lines += &format!("{attempt}\n");
    }
    process::write(&journal, lines)?;
    process::run(Command::new(kvant).args(["lab", "report"]).arg(copy).stdout(Stdio::null()))
}
