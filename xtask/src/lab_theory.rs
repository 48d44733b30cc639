//! `cargo xtask lab-theory [CHECK]... [--long] [--queue NAME] [--release] [--service-us N]`:
//! compares reports of `kvant lab run` with queues of known behaviour. The checks, by default all:
//!
//! - [`capacity`]: a server of exactly 5,000 requests per second; five searches must find it.
//! - [`queues`]: M/D/1 and M/M/1 at three loads, against the exact queue and against theory.
//! - [`disturbances`]: a paused generator, and a neighbour that takes the cores.
//!
//! Every figure comes from `report.json`. Attempts that others disturbed are in no figure; a check
//! without valid attempts says so and does not pass.

mod capacity;
mod disturbances;
mod formulas;
mod queues;
mod setting;

use crate::process::{self, Verdict};
use clap::{Arg, ArgAction, ArgMatches};
use setting::Setting;

/// In the order in which they run.
const CHECKS: [&str; 3] = ["disturbances", "capacity", "queues"];

pub(crate) fn command() -> clap::Command {
    let long = Arg::new("long").long("long").action(ArgAction::SetTrue);
    let names: Vec<String> = queues::names().collect();
    let queue = Arg::new("queue").long("queue").value_name("NAME").value_parser(names);
    let checks = Arg::new("CHECK").num_args(0..).value_parser(CHECKS);
    clap::Command::new("lab-theory")
        .about("Check reports of `kvant lab` against queueing theory")
        .long_about(
            "Run `kvant lab` on a server of known behaviour and compare its report with queueing \
             theory; pause the generator and take its cores, and check that no figure shows it. \
             Needs a calm machine.",
        )
        .args([
            checks.help("Only these"),
            long.help("Run the queues so long that theory itself must be met within 5 %: an hour"),
            queue.help("Only this queue"),
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
    let wanted: Option<Vec<&String>> = matches.get_many("CHECK").map(Iterator::collect);
    let is_wanted =
        |check: &&str| wanted.as_ref().is_none_or(|all| all.iter().any(|one| one == check));
    let only: Option<&String> = matches.get_one("queue");
    let mut passed = true;
    for check in CHECKS.iter().filter(|check| is_wanted(check)) {
        passed &= match *check {
            "disturbances" => disturbances::check(&setting)?,
            "capacity" => capacity::check(&setting)?,
            _ => queues::check(&setting, length, only.map(String::as_str))?,
        };
    }
    println!("lab-theory: {}", if passed { "passed" } else { "failed" });
    Ok(passed)
}
