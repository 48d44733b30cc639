//! `cargo xtask profile-check [--release]`: reads the profiler's files with third-party programs.
//!
//! A browser (Debian's Chromium, driven by Playwright's library) opens pages: they must draw,
//! search, zoom, select and compare, agree with sums of the recordings, and load nothing from
//! outside. Datadog's `pprof-format` reads pprof files, speedscope collapsed stacks; all must
//! arrive at the same sums. The recordings are made-up ones, and one of a server under load.
//! Packages come from npm in pinned versions, into a directory below `target/`; screenshots stay in
//! `target/profile-check/pictures`.

use crate::process::{self, Verdict, about};
use crate::server::Server;
use clap::ArgMatches;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The scripts, and the versions of the packages that they need.
const SCRIPTS: &str = "crates/kvant-profiler/tests/browser";
const PACKAGE_FILES: &[&str] = &["package.json", "package-lock.json", ".npmrc"];
/// The names of `kvant profile --kind`.
const KINDS: &[&str] =
    &["cpu", "alloc", "contention", "idle", "backpressure", "io", "scheduler", "holder"];
/// A load for a small machine that fills the memtable (4 MiB with this memory) several times.
const SERVE: &[&str] = &["--memory", "64MiB"];
const LOAD: &str =
    "load -t1 -c8 -d12s -R500 --workload put --value-bytes 1..10000 --keys 20000 --quiet";
const PROFILE: &str = "profile -d 8s -o real.kprof";

pub(crate) fn command() -> clap::Command {
    clap::Command::new("profile-check")
        .about("Check files of the profiler in a browser and with programs from npm")
        .long_about(
            "Profile a server under load, read the files in a browser and with programs from npm, \
             and compare. Needs Node.js, npm and Chromium.",
        )
        .arg(process::release_flag())
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let files = process::empty_dir("profile-check/files")?;
    made_up_recordings(&files)?;
    real_recording(&process::build_kvant(matches)?.join("kvant"), &files)?;
    let scripts = scripts_with_packages()?;
    let mut passed = true;
    for script in ["check.mjs", "foreign.mjs"] {
        let status = Command::new("node").arg(scripts.join(script)).arg(&files).status();
        passed &= status.map_err(about("node"))?.success();
    }
    println!("profile-check: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}

/// The files of an example of kvant-profiler.
fn made_up_recordings(files: &Path) -> Result<(), String> {
    let made = process::json_of_example("kvant-profiler", "profile_files")?;
    for (name, content) in made.as_object().ok_or("profile_files printed no object")? {
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        process::write(&files.join(name), text)?;
    }
    Ok(())
}

/// Records a server under load, and converts the recording to all other formats.
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
        process::run(&mut command)
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
    let mut load = Command::new(kvant);
    load.args(LOAD.split(' ')).arg(&url).current_dir(files).stdout(Stdio::null());
    let mut load = load.spawn().map_err(about(kvant.display()))?;
    let mut profile = Command::new(kvant);
    profile.args(PROFILE.split(' ')).args(["--url", &url]).current_dir(files);
    let profiled = process::run(&mut profile);
    let loaded = load.wait().map_err(about("kvant load"))?;
    profiled?;
    if loaded.success() { Ok(()) } else { Err(format!("kvant load: {loaded}")) }
}

/// A copy of the scripts beside their packages: Node looks for packages where a script lies.
fn scripts_with_packages() -> Result<PathBuf, String> {
    let source = process::root().join(SCRIPTS);
    let copy = process::target_dir()?.join("profile-check/scripts");
    fs::create_dir_all(&copy).map_err(about(copy.display()))?;
    process::run(Command::new("cp").arg("-r").arg(source.join(".")).arg(&copy))?;
    let wanted: Result<String, String> =
        PACKAGE_FILES.iter().map(|name| process::read(&source.join(name))).collect();
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
