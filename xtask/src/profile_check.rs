//! `cargo xtask profile-check [--release]`: reads the profiler's files with third-party programs.
//!
//! A browser (Debian's Chromium, driven by Playwright's library) opens pages: they must draw,
//! search, zoom, select and compare, agree with sums of the recordings, and load nothing from
//! outside. Datadog's `pprof-format` reads pprof files, speedscope collapsed stacks; all must
//! arrive at the same sums. The recordings are made-up ones, and one of a server under load.
//! Packages come from npm in pinned versions, into a directory below `target/`; screenshots stay in
//! `target/profile-check/pictures`.

use crate::browser;
use crate::process::{self, Verdict, about};
use crate::server::Server;
use clap::ArgMatches;
use std::path::Path;
use std::process::{Command, Stdio};

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
    browser::files_of_example("kvant-profiler", "profile_files", &files)?;
    real_recording(&process::build_kvant(matches)?.join("kvant"), &files)?;
    let scripts = browser::scripts_with_packages("profile-check", &[browser::PROFILER_SCRIPTS])?;
    let mut passed = true;
    for script in ["check.mjs", "foreign.mjs"] {
        passed &= browser::run_script(&scripts.join(script), &files)?;
    }
    println!("profile-check: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
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
