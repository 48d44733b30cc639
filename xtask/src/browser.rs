//! What checks in a browser share: scripts beside the packages that they need.

use crate::process::{self, about};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profiler's scripts, the parts that all checks use, and the versions of the packages.
pub(crate) const PROFILER_SCRIPTS: &str = "crates/kvant-profiler/tests/browser";
const PACKAGE_FILES: &[&str] = &["package.json", "package-lock.json", ".npmrc"];

/// A copy of the scripts of some directories, the first with the packages' versions, beside the
/// packages: Node looks for packages where a script lies.
pub(crate) fn scripts_with_packages(name: &str, sources: &[&str]) -> Result<PathBuf, String> {
    let copy = process::target_dir()?.join(name).join("scripts");
    fs::create_dir_all(&copy).map_err(about(copy.display()))?;
    for source in sources {
        let from = process::root().join(source).join(".");
        process::run(Command::new("cp").arg("-r").arg(from).arg(&copy))?;
    }
    let wanted: Result<String, String> =
        PACKAGE_FILES.iter().map(|name| process::read(&copy.join(name))).collect();
    let (wanted, stamp) = (wanted?, copy.join("installed"));
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&copy);
        process::run(&mut npm).map_err(|error| {
            format!("{error}; it needs Node.js (Debian: apt-get install nodejs npm chromium)")
        })?;
        process::write(&stamp, wanted)?;
    }
    Ok(copy)
}

/// Runs a script over the files in `dir`; whether it found nothing.
pub(crate) fn run_script(script: &Path, dir: &Path) -> process::Verdict {
    let status = Command::new("node").arg(script).arg(dir).status();
    Ok(status.map_err(about("node"))?.success())
}

/// Writes the members of a JSON object, which an example of a crate prints, as files.
pub(crate) fn files_of_example(package: &str, example: &str, dir: &Path) -> Result<(), String> {
    let made = process::json_of_example(package, example)?;
    for (name, content) in made.as_object().ok_or(format!("{example} printed no object"))? {
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        process::write(&dir.join(name), text)?;
    }
    Ok(())
}
