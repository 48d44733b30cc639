//! `cargo xtask readme [--release]`: the README's examples against a real server.
//!
//! Bash runs every `sh` block of the README's [`SECTIONS`], in order, in one temporary directory,
//! with `kvant` in the path, against a server on a free port of the loopback address; [`ADDRESS`]
//! in a block stands for that server. A `text` block that follows is the expected output: a line
//! `...` stands for any lines, and `...` in a line for any characters.

mod example;

use crate::process::{self, Verdict, about};
use crate::server::Server;
use clap::{ArgMatches, Command};
use example::Example;
use std::path::Path;
use std::process::Stdio;

/// The sections with examples to run.
const SECTIONS: [&str; 2] = ["## Five minutes with curl", "## How fast is it?"];
/// The default address, as the README writes it.
const ADDRESS: &str = "127.0.0.1:8080";

pub(crate) fn command() -> Command {
    Command::new("readme")
        .about("Run the README's examples against a real server and compare their output")
        .arg(process::release_flag())
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let readme = process::read(&process::root().join("README.md"))?;
    let mut examples = Vec::new();
    for section in SECTIONS {
        let of_section = example::of_section(&readme, section);
        if of_section.is_empty() {
            return Err(format!("README.md has no sh block in the section {section:?}"));
        }
        examples.extend(of_section);
    }
    let binaries = process::build_kvant(matches)?;
    let work = process::empty_dir("readme-examples")?;
    // Without a terminal curl would draw its progress into the output.
    process::write(&work.join(".curlrc"), "silent\nshow-error\n")?;
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
    let end = if all_match { "as written" } else { "run, not all as written" };
    println!("readme: {} examples {end}", examples.len());
    Ok(all_match)
}

/// What a block prints, standard error included, with the README's address for the server's.
fn output_of(example: &Example, server: &Server, binaries: &Path) -> Result<String, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let script = example.script.replace(ADDRESS, &server.address);
    let output = std::process::Command::new("timeout")
        .args(["60", "bash", "-euo", "pipefail", "-c", &format!("exec 2>&1\n{script}")])
        .current_dir(&server.work)
        .env("CURL_HOME", &server.work)
        .env("PATH", format!("{}:{path}", binaries.display()))
        .stdin(Stdio::null())
        .output()
        .map_err(about("timeout 60 bash"))?;
    let printed = String::from_utf8_lossy(&output.stdout).replace(&server.address, ADDRESS);
    match output.status.success() {
        true => Ok(printed),
        false => Err(format!("README.md:{}: {}\n{printed}", example.line, output.status)),
    }
}
