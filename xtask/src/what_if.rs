//! `cargo xtask what-if [--rounds N] [--release]`: compares predictions of `kvant lab what-if` with
//! real changes of a Kvant.
//!
//! No stage of a server can be made faster at will, but one can be made slower. So a server with a
//! stage of twice its time is the one to predict: what would it bring if this stage took 10, 25 or
//! 50 % less? The last is the server as it is. Each round measures, one after the other, the slow
//! server, the slow server with all other stages slowed down, and the slow server with the faster
//! stage. The server has one event loop on CPU 0, the generator is on CPU 1.

use crate::process::{self, Verdict, about};
use crate::server::Server;
use clap::ArgMatches;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

const STAGES: [&str; 2] = ["parse", "table"];
const ALL_STAGES: [&str; 10] =
    ["none", "parse", "dispatch", "memtable", "table", "wal", "sync", "merge", "build", "respond"];
const PERCENTS: [u32; 3] = [10, 25, 50];
/// What is predicted may be off by so much.
const TOLERANCE: f64 = 0.1;
const KEYS: &str = "200k";
/// A generator that sleeps would have to be woken up by each response of a slow server.
const OPTIONS: [&str; 14] = [
    "-t",
    "1",
    "-c",
    "16",
    "-R",
    "0",
    "-d",
    "1s",
    "--warmup",
    "200ms",
    "--spin",
    "always",
    "--workload",
    "get",
];
/// Between two experiments of the server.
const RETRY: Duration = Duration::from_millis(20);

/// What is measured of a server with a slow stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Configuration {
    Slow,
    Predicted(u32),
    Real(u32),
}

pub(crate) fn command() -> clap::Command {
    clap::Command::new("what-if")
        .about("Compare predictions of `kvant lab what-if` with real changes")
        .args([process::release_flag(), process::number("rounds", "Rounds of 21 s [7]")])
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let kvant = process::build_kvant(matches)?.join("kvant");
    let work = process::empty_dir("what-if")?;
    let arguments = ["--selectors", "1", "--dispatch", "inline", "--data", "data"];
    let mut server = Server::start(&kvant, &work, &arguments)?;
    let id = server.id().to_string();
    process::run(
        Command::new("taskset").args(["-acp", "0", &id]).stdout(std::process::Stdio::null()),
    )?;
    let url = format!("http://{}", server.address);
    let fill = ["-c", "1", &kvant.to_string_lossy(), "load", "fill", "--keys", KEYS, &url];
    process::stdout_of(Command::new("taskset").args(fill))?;
    ask(&server.address, "flush")?;
    let rounds = matches.get_one("rounds").copied().unwrap_or(7_u64);
    let mut rates: BTreeMap<(&str, Configuration), Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for stage in STAGES {
            for configuration in configurations() {
                let rate = measure(&kvant, &server, stage, configuration)?;
                rates.entry((stage, configuration)).or_default().push(rate);
            }
        }
    }
    server.stop()?;
    let mut is_met = true;
    for stage in STAGES {
        let of = |configuration| &rates[&(stage, configuration)];
        let slow = of(Configuration::Slow);
        println!("{stage} with twice its time: {:.0}/s", median(slow.clone()));
        // The speed of the machine drifts: a round is compared with itself.
        let ratio = |configuration| {
            let pairs = of(configuration).iter().zip(slow);
            median(pairs.map(|(rate, slow)| rate / slow).collect())
        };
        for percent in PERCENTS {
            let predicted = ratio(Configuration::Predicted(percent));
            let real = ratio(Configuration::Real(percent));
            let off = predicted / real - 1.0;
            is_met &= off.abs() <= TOLERANCE;
            let off = 100.0 * off;
            println!("  -{percent} %: x{predicted:.3}, really x{real:.3}, off {off:+.1} %");
        }
    }
    println!("what-if: {}", if is_met { "passed" } else { "failed" });
    Ok(is_met)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn configurations() -> Vec<Configuration> {
    let both = |percent| [Configuration::Predicted(percent), Configuration::Real(percent)];
    [Configuration::Slow].into_iter().chain(PERCENTS.into_iter().flat_map(both)).collect()
}

/// Requests per second; predicted ones by the time of the slow-down.
fn measure(
    kvant: &Path,
    server: &Server,
    stage: &str,
    configuration: Configuration,
) -> Result<f64, String> {
    // The stage takes twice its time: all of that, but for what it is spared.
    let spared = |percent: u32| 2.0 * (1.0 - f64::from(percent) / 100.0);
    let (own, others) = match configuration {
        Configuration::Slow => (2.0, 1.0),
        Configuration::Predicted(percent) => (2.0, 100.0 / f64::from(100 - percent)),
        Configuration::Real(percent) => (spared(percent), 1.0),
    };
    let slow: Vec<String> = ALL_STAGES
        .iter()
        .map(|other| (other, if *other == stage { own } else { others }))
        .map(|(other, factor)| format!("{other}:{:.2}", 100.0 * (factor - 1.0)))
        .collect();
    ask(&server.address, &format!("what-if?for=1400ms&slow={}", slow.join(",")))?;
    Ok(load(kvant, &server.work, &server.address)? * others)
}

/// Gets as fast as they are answered; returns responses per second.
fn load(kvant: &Path, work: &Path, address: &str) -> Result<f64, String> {
    let file = work.join("load.json");
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(kvant).args(["load", "--quiet", "--json"]).arg(&file);
    command.args(OPTIONS).args(["--keys", KEYS]).arg(format!("http://{address}"));
    process::stdout_of(&mut command)?;
    let result: Value = serde_json::from_str(&process::read(&file)?).map_err(about("load"))?;
    let rate = result.pointer("/phases/0/rate_achieved_per_s").and_then(Value::as_f64);
    rate.ok_or_else(|| "the load has no rate".to_owned())
}

/// An operator's request, again while an experiment before it runs.
fn ask(address: &str, what: &str) -> Result<(), String> {
    loop {
        let mut stream = TcpStream::connect(address).map_err(about(address))?;
        let head = format!(
            "POST /v0/admin/{what} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).map_err(about(address))?;
        let mut response = String::new();
        stream.read_to_string(&mut response).map_err(about(address))?;
        match response.split(' ').nth(1) {
            Some("200") => return Ok(()),
            Some("409") => thread::sleep(RETRY),
            _ => return Err(format!("{what}: {response}")),
        }
    }
}
