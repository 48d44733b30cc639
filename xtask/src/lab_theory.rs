//! `cargo xtask lab-theory [--long] [--release] [--service-us N]`: compares reports of `kvant lab
//! run` with queues of known behaviour.
//!
//! - [`capacity`]: a server of exactly 5,000 requests per second; five searches must find it.
//! - [`queues`]: M/D/1 and M/M/1 at three loads, against the exact queue and against theory.
//! - [`disturbances`]: a paused generator, and a neighbour that takes the cores.
//!
//! Every figure comes from `report.json`. Attempts that others disturbed are in no figure; a check
//! without valid attempts says so and does not pass.

mod capacity;
mod disturbances;
#[path = "../../crates/kvant-lab/tests/queue/exact.rs"]
mod exact;
mod formulas;
mod queues;

use crate::process::{self, Verdict, about};
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs, and a directory for plans, runs and logs.
struct Setting {
    kvant: PathBuf,
    server: PathBuf,
    dir: PathBuf,
}

pub(crate) fn command() -> clap::Command {
    let long = Arg::new("long").long("long").action(ArgAction::SetTrue);
    clap::Command::new("lab-theory")
        .about("Check reports of `kvant lab` against queueing theory")
        .long_about(
            "Run `kvant lab` on a server of known behaviour and compare its report with queueing \
             theory; pause the generator and take its cores, and check that no figure shows it. \
             Needs a calm machine.",
        )
        .args([
            long.help("Run so long that theory itself must be met within 5 %: 50 minutes"),
            process::release_flag(),
            process::number("service-us", "Mean service time of the queues of short runs [4000]"),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let kvant = process::build_kvant(matches)?.join("kvant");
    let example = ["build", "--quiet", "--package", "kvant-lab", "--example", "queue_server"];
    process::run(process::cargo().args(example))?;
    let server = process::target_dir()?.join("debug/examples/queue_server");
    let setting = Setting { kvant, server, dir: process::empty_dir("lab-theory")? };
    let length = match matches.get_flag("long") {
        true => queues::Length::Long,
        false => queues::Length::Short {
            service_us: matches.get_one("service-us").copied().unwrap_or(4_000),
        },
    };
    let passed = [
        disturbances::check(&setting)?,
        capacity::check(&setting)?,
        queues::check(&setting, length)?,
    ];
    let passed = passed.into_iter().all(|passed| passed);
    println!("lab-theory: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}

impl Setting {
    /// The command that runs a plan, whose directory will be `NAME` below ours.
    fn lab_run(&self, name: &str, plan: &str) -> Result<Command, String> {
        let file = self.dir.join(format!("{name}.toml"));
        process::write(&file, plan)?;
        let mut command = Command::new(&self.kvant);
        command.args(["lab", "run", "--quiet"]).arg(file).arg("-o").arg(self.run_dir(name));
        command.stdout(std::process::Stdio::null());
        Ok(command)
    }

    fn run_dir(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The report of a run that has ended.
    fn report(&self, name: &str) -> Result<Value, String> {
        json(&self.run_dir(name).join("report.json"))
    }

    /// Runs a plan and returns its report. A run in which no attempt counts fails, with a report.
    fn run(&self, name: &str, plan: &str) -> Result<Value, String> {
        let mut command = self.lab_run(name, plan)?;
        command.status().map_err(about(process::shown(&command)))?;
        self.report(name)
    }

    /// A subject of a plan: the server with a mean service time.
    fn subject(&self, name: &str, model: &str, service_us: u64, workload: &str) -> String {
        let (server, seed) = (self.server.display(), SEED);
        format!(
            "[subject.{name}]\nready = \"/\"\nfixed-response = true\nworkloads = [\"{workload}\"]\n\
             command = [\"{server}\", \"{{port}}\", \"{model}\", \"{service_us}\", \"{seed}\", \
             \"{{dir}}/{name}.csv\"]\n"
        )
    }
}

/// Of the service times.
const SEED: u64 = 7;

fn json(path: &Path) -> Result<Value, String> {
    serde_json::from_str(&process::read(path)?).map_err(about(path.display()))
}

/// Prints a comparison; returns whether `value` is within `tolerance` of `expected`.
fn compare(what: &str, value: f64, expected: f64, tolerance: f64, unit: &str) -> bool {
    let apart = value / expected - 1.0;
    let is_met = apart.abs() <= tolerance;
    println!(
        "{what:<44} {value:>10.3} {unit}, expected {expected:>10.3}: {:>+6.2} % (within {} %){}",
        apart * 100.0,
        tolerance * 100.0,
        if is_met { "" } else { "  FAILED" }
    );
    is_met
}

/// Prints what became of the attempts of a case that has no figure.
fn print_without_figure(what: &str, report: &Value, case: &Value) {
    println!("{what}: FAILED, no attempt counts");
    let attempts = report["attempts"].as_array().into_iter().flatten();
    for attempt in attempts.filter(|attempt| attempt["case"] == *case) {
        println!("    attempt {}: {}", attempt["number"], attempt["verdict"]["why"]);
    }
}
