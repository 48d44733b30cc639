//! `cargo xtask lab-check`: opens pages of the lab in a browser.
//!
//! Chromium, driven by Playwright's library, opens pages of made-up reports: light and dark, wide
//! and narrow, in both languages, without scripts. They must be small, draw in a second, load
//! nothing, agree with sums of the report and of its recordings, and be usable by keys. Screenshots
//! stay in `target/lab-check/pictures`.

use crate::browser;
use crate::process::{self, Verdict};
use clap::ArgMatches;

const SCRIPTS: &str = "crates/kvant-lab/tests/browser";

pub(crate) fn command() -> clap::Command {
    clap::Command::new("lab-check").about("Check pages of the lab in a browser").long_about(
        "Open pages of made-up reports in a browser and compare what they show with the \
             reports. Needs Node.js, npm and Chromium.",
    )
}

pub(crate) fn run(_matches: &ArgMatches) -> Verdict {
    let files = process::empty_dir("lab-check/files")?;
    browser::files_of_example("kvant-lab", "lab_page", &files)?;
    let sources = [browser::PROFILER_SCRIPTS, SCRIPTS];
    let scripts = browser::scripts_with_packages("lab-check", &sources)?;
    let passed = browser::run_script(&scripts.join("lab.mjs"), &files)?;
    println!("lab-check: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}
