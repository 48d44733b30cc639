//! `cargo xtask profile-check [--release]`: what the profiler writes, read by programs that are not
//! ours.
//!
//! A browser (Debian's Chromium, driven by Playwright's library) opens pages: they must draw,
//! search, zoom, select and compare, agree with sums of the recordings, and ask for nothing outside
//! of themselves. pprof files are read by Datadog's `pprof-format`, collapsed stacks by speedscope;
//! all must come to the same sums. The recordings are made-up ones, and one of a server under load.
//! Packages come from npm in pinned versions, into a directory below `target/`; pictures stay in
//! `target/profile-check/pictures`.

use crate::server::Server;
use crate::{Verdict, args, cargo};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The scripts, and the versions of what they need.
const SCRIPTS: &str = "crates/kvant-profiler/tests/browser";
const PACKAGE_FILES: &[&str] = &["package.json", "package-lock.json", ".npmrc"];
/// As `kvant profile --kind` calls them.
const KINDS: &[&str] =
    &["cpu", "alloc", "contention", "idle", "backpressure", "io", "scheduler", "holder"];
/// A load that small machines bear, with a memtable (of 4 MiB, by this memory) that fills several
/// times meanwhile.
const SERVE: &[&str] = &["--memory", "64MiB"];
const LOAD: &str =
    "load -t1 -c8 -d12s -R500 --workload put --value-bytes 1..10000 --keys 20000 --quiet";
const PROFILE: &str = "profile -d 8s -o real.kprof";

/// Makes the files, has them read, and says whether all agreed.
pub(crate) fn run(arguments: &[String]) -> Verdict {
    let release = args::release(arguments)?;
    let dir = cargo::target_dir()?.join("profile-check");
    let files = dir.join("files");
    if files.exists() {
        fs::remove_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    }
    make_dir(&files)?;
    made_up_recordings(&files)?;
    real_recording(&cargo::build_kvant(release)?.join("kvant"), &files)?;
    let scripts = scripts_with_packages(&dir)?;
    let mut passed = true;
    for script in ["check.mjs", "foreign.mjs"] {
        let status = Command::new("node").arg(scripts.join(script)).arg(&files).status();
        passed &= status.map_err(|error| format!("node: {error}"))?.success();
    }
    println!("profile-check: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}

/// What the example prints as one JSON object, as files.
fn made_up_recordings(files: &Path) -> Result<(), String> {
    let mut example = cargo::cargo();
    example.args(["run", "--quiet", "--package", "kvant-profiler", "--example", "profile_files"]);
    let text = cargo::stdout_of(&mut example)?;
    let made: Value =
        serde_json::from_slice(&text).map_err(|error| format!("profile_files: {error}"))?;
    for (name, content) in made.as_object().ok_or("profile_files printed no object")? {
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        write(&files.join(name), &text)?;
    }
    Ok(())
}

/// A server under load records itself; what it wrote becomes all other formats.
fn real_recording(kvant: &Path, files: &Path) -> Result<(), String> {
    let mut server = Server::start(kvant, files, SERVE)?;
    let outcome = profile_under_load(kvant, &server, files);
    let stopped = server.stop();
    if outcome.is_err() || stopped.is_err() {
        println!("profile-check: the server's log:\n{}", server.log());
    }
    stopped.and(outcome)?;
    let convert = |arguments: &[&str], output: &str| {
        let mut command = Command::new(kvant);
        command.args(["profile", "real.kprof", "-o", output]).args(arguments).current_dir(files);
        cargo::run(&mut command)
    };
    convert(&[], "real.html")?;
    convert(&[], "real.pb.gz")?;
    for kind in KINDS {
        convert(&["--kind", kind], &format!("real.{kind}.collapsed"))?;
    }
    Ok(())
}

fn profile_under_load(kvant: &Path, server: &Server, files: &Path) -> Result<(), String> {
    let url = format!("http://{}", server.address);
    let mut load = Command::new(kvant)
        .args(LOAD.split(' '))
        .arg(&url)
        .current_dir(files)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", kvant.display()))?;
    let mut profile = Command::new(kvant);
    profile.args(PROFILE.split(' ')).args(["--url", &url]).current_dir(files);
    let profiled = cargo::run(&mut profile);
    let loaded = load.wait().map_err(|error| format!("kvant load: {error}"))?;
    profiled?;
    if loaded.success() { Ok(()) } else { Err(format!("kvant load: {loaded}")) }
}

/// A copy of the scripts beside their packages: Node looks for packages where a script lies.
fn scripts_with_packages(dir: &Path) -> Result<PathBuf, String> {
    let source = cargo::root().join(SCRIPTS);
    let copy = dir.join("scripts");
    make_dir(&copy)?;
    let mut wanted = String::new();
    for name in PACKAGE_FILES {
        wanted += &read(&source.join(name))?;
    }
    let entries =
        fs::read_dir(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", source.display()))?.path();
        if path.is_file() {
            let name = path.file_name().ok_or("a file without a name")?;
            write(&copy.join(name), &read(&path)?)?;
        }
    }
    let stamp = copy.join("installed");
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&copy);
        cargo::run(&mut npm).map_err(|error| {
            format!(
                "{error}; it needs Node.js and npm (Debian: apt-get install nodejs npm chromium)"
            )
        })?;
        write(&stamp, &wanted)?;
    }
    Ok(copy)
}

fn make_dir(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
