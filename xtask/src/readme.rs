//! `cargo xtask readme [--release]`: the README's examples, run as they stand against a real
//! server.
//!
//! Every `sh` block of the README's [`SECTIONS`] is run by bash, in order, in one temporary
//! directory, with `kvant` in the path, against a server that is started on a free port of the
//! loopback address; [`ADDRESS`] in a block stands for that server. A `text` block that follows is
//! what the block must print: a line `...` stands for any lines, and `...` in a line for any
//! characters.

mod example;

use crate::server::Server;
use crate::{Verdict, args, cargo};
use example::Example;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The sections whose examples are run.
const SECTIONS: [&str; 2] = ["## Five minutes with curl", "## How fast is it?"];
/// The default address, as the README writes it.
const ADDRESS: &str = "127.0.0.1:8080";

/// Builds the binary, runs the examples, and prints where output and README differ.
pub(crate) fn run(arguments: &[String]) -> Verdict {
    let release = args::release(arguments)?;
    let readme = fs::read_to_string(cargo::root().join("README.md"))
        .map_err(|error| format!("README.md: {error}"))?;
    let mut examples = Vec::new();
    for section in SECTIONS {
        let of_section = example::of_section(&readme, section);
        if of_section.is_empty() {
            return Err(format!("README.md has no sh block in the section {section:?}"));
        }
        examples.extend(of_section);
    }
    let binaries = cargo::build_kvant(release)?;
    let work = cargo::target_dir()?.join("readme-examples");
    if work.exists() {
        fs::remove_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    }
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    // Without a terminal curl would draw its progress into the output.
    fs::write(work.join(".curlrc"), "silent\nshow-error\n")
        .map_err(|error| format!(".curlrc: {error}"))?;

    let mut server = Server::start(&binaries.join("kvant"), &work, &[])?;
    let outcome = run_all(&examples, &server, &binaries);
    let stopped = server.stop();
    if !matches!(outcome, Ok(true)) || stopped.is_err() {
        println!("readme: the server's log:\n{}", server.log());
    }
    stopped.and(outcome)
}

fn run_all(examples: &[Example], server: &Server, binaries: &Path) -> Verdict {
    let mut all_match = true;
    for example in examples {
        let printed = output_of(example, server, binaries)?;
        if let Some(difference) = example.difference(&printed) {
            println!("README.md:{}: {difference}", example.line);
            all_match = false;
        }
    }
    println!(
        "readme: {} examples {}",
        examples.len(),
        if all_match { "as written" } else { "run, not all as written" }
    );
    Ok(all_match)
}

/// What a block prints, standard error included, with the server's address replaced by the
/// README's.
fn output_of(example: &Example, server: &Server, binaries: &Path) -> Result<String, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let script = example.script.replace(ADDRESS, &server.address);
    let output = Command::new("timeout")
        .args(["60", "bash", "-euo", "pipefail", "-c", &format!("exec 2>&1\n{script}")])
        .current_dir(&server.work)
        .env("CURL_HOME", &server.work)
        .env("PATH", format!("{}:{path}", binaries.display()))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("timeout 60 bash: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).replace(&server.address, ADDRESS);
    if output.status.success() {
        Ok(printed)
    } else {
        Err(format!("README.md:{}: {}\n{printed}", example.line, output.status))
    }
}
