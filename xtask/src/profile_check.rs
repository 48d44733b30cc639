//! `cargo xtask profile-check`: what the profiler writes, used by programs that are not ours.
//!
//! A browser (Debian's Chromium, driven by Playwright's library from npm) opens pages of made-up recordings: they must draw, search,
//! zoom, select and compare, agree with sums of the recordings, and ask for nothing outside of themselves. Packages come from npm in
//! pinned versions, into a directory below `target/`; pictures of the pages stay in `target/profile-check/pictures`.

use crate::{Verdict, cargo};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The scripts and the versions of what they need.
const SCRIPTS: &str = "crates/kvant-profiler/tests/browser";
const PACKAGE_FILES: &[&str] = &["package.json", "package-lock.json", ".npmrc"];

/// Makes the files, has them read, and says whether all agreed.
pub(crate) fn run() -> Verdict {
    let dir = cargo::target_dir()?.join("profile-check");
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    made_up_recordings(&dir)?;
    let scripts = scripts_with_packages(&dir)?;
    let mut passed = true;
    for script in ["check.mjs"] {
        let status = Command::new("node").arg(scripts.join(script)).arg(&dir).status();
        passed &= status.map_err(|error| format!("node: {error}"))?.success();
    }
    println!("profile-check: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}

/// What the example prints as one JSON object, as files.
fn made_up_recordings(dir: &Path) -> Result<(), String> {
    let mut example = cargo::cargo();
    example.args([
        "run",
        "--quiet",
        "--package",
        "kvant-profiler",
        "--example",
        "profile_files",
    ]);
    let text = cargo::stdout_of(&mut example)?;
    let files: Value = serde_json::from_slice(&text).map_err(|error| format!("profile_files: {error}"))?;
    let files = files.as_object().ok_or("profile_files printed no object")?;
    for (name, content) in files {
        let text = content
            .as_str()
            .map_or_else(|| content.to_string(), str::to_owned);
        write(&dir.join(name), &text)?;
    }
    Ok(())
}

/// A copy of the scripts beside their packages: Node looks for packages where a script lies.
fn scripts_with_packages(dir: &Path) -> Result<PathBuf, String> {
    let source = cargo::root().join(SCRIPTS);
    let copy = dir.join("scripts");
    std::fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut wanted = String::new();
    for name in PACKAGE_FILES {
        wanted += &read(&source.join(name))?;
    }
    let entries = std::fs::read_dir(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    for entry in entries {
        let path = entry
            .map_err(|error| format!("{}: {error}", source.display()))?
            .path();
        if path.is_file() {
            let name = path.file_name().ok_or("a file without a name")?;
            write(&copy.join(name), &read(&path)?)?;
        }
    }
    let stamp = copy.join("installed");
    if !std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&copy);
        cargo::run(&mut npm).map_err(|error| {
            format!("{error}; it needs Node.js and npm (Debian: apt-get install nodejs npm chromium)")
        })?;
        write(&stamp, &wanted)?;
    }
    Ok(copy)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
