//! What all checks share: programs, runs of plans, comparisons.

use crate::process::{self, about};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs, and a directory for plans, runs and logs.
pub(super) struct Setting {
    pub(super) kvant: PathBuf,
    pub(super) server: PathBuf,
    pub(super) dir: PathBuf,
}

impl Setting {
    /// The command that runs a plan, whose directory will be `NAME` below ours.
    pub(super) fn lab_run(&self, name: &str, plan: &str) -> Result<Command, String> {
        let file = self.dir.join(format!("{name}.toml"));
        process::write(&file, plan)?;
        let mut command = Command::new(&self.kvant);
        command.args(["lab", "run", "--quiet"]).arg(file).arg("-o").arg(self.run_dir(name));
        command.stdout(Stdio::null());
        Ok(command)
    }

    pub(super) fn run_dir(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The report of a run that has ended.
    pub(super) fn report(&self, name: &str) -> Result<Value, String> {
        json(&self.run_dir(name).join("report.json"))
    }

    /// Runs a plan and returns its report. A run in which no attempt counts fails, with a report.
    pub(super) fn run(&self, name: &str, plan: &str) -> Result<Value, String> {
        self.lab_run(name, plan)?.status().map_err(about(name))?;
        self.report(name)
    }

    /// A subject of a plan: the server with a mean service time, and whether it keeps CPUs busy so
    /// that threads wake up early.
    pub(super) fn subject(
        &self,
        name: &str,
        (model, service_us): (&str, u64),
        workload: &str,
        is_awake: bool,
    ) -> String {
        let (server, seed) = (self.server.display(), SEED);
        let awake = if is_awake { ", \"awake\"" } else { "" };
        format!(
            "[subject.{name}]\nready = \"/\"\nfixed-response = true\nworkloads = [\"{workload}\"]\n\
             command = [\"{server}\", \"{{port}}\", \"{model}\", \"{service_us}\", \"{seed}\", \
             \"{{dir}}/{name}.csv\"{awake}]\n"
        )
    }
}

/// Of the service times.
const SEED: u64 = 7;

pub(super) fn json(path: &Path) -> Result<Value, String> {
    serde_json::from_str(&process::read(path)?).map_err(about(path.display()))
}

/// Prints a comparison; returns whether `value` is within `tolerance` of `expected`.
pub(super) fn compare(what: &str, value: f64, expected: f64, tolerance: f64, unit: &str) -> bool {
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
pub(super) fn print_without_figure(what: &str, report: &Value, case: &Value) {
    println!("{what}: FAILED, no attempt counts");
    let attempts = report["attempts"].as_array().into_iter().flatten();
    for attempt in attempts.filter(|attempt| attempt["case"] == *case) {
        println!("    attempt {}: {}", attempt["number"], attempt["verdict"]["why"]);
    }
}
