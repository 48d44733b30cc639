//! `cargo xtask bench cluster`: Kvant's server on a cluster, beside the driver alone in a loop.
//!
//! Both do the same requests on the same nodes, one after the other, in rounds. Nodes, server and
//! generator share the processors of this machine, so a rate says as much about the nodes as about
//! Kvant; CPU time of the server for each request is the steady figure. What the driver costs alone
//! is subtracted from it, and the rest compared with a whole request of the engine `memory`, whose
//! part beside HTTP is small.

use crate::cluster;
use crate::process::{self, Verdict, about};
use crate::server::Server;
use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

const NODE: &str = "127.0.0.1:9042";
const KEYSPACE: &str = "bench";
const IN_FLIGHT: u64 = 64;
const KEYS: u64 = 100_000;
/// Requests of a measurement, by operation: some seconds.
const OPERATIONS: [(&str, u64); 3] = [("put", 60_000), ("get", 60_000), ("range", 2_000)];

pub(crate) fn command() -> Command {
    let nodes = Arg::new("nodes").long("nodes").value_name("N").default_value("1");
    Command::new("cluster")
        .about(
            "Kvant's server on a cluster, beside the driver alone; needs what `cluster up` needs",
        )
        .arg(nodes.value_parser(value_parser!(u8).range(1..=3)).help("Nodes to start"))
        .arg(process::number("buckets", "Partitions").default_value("16"))
        .arg(process::number("rounds", "Measurements of each kind").default_value("3"))
}

/// What a measurement came to.
#[derive(Clone, Copy)]
struct Figure {
    rate: f64,
    cpu_us: f64,
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let number = |name| matches.get_one::<u64>(name).copied().unwrap_or(1);
    let nodes = matches.get_one::<u8>("nodes").copied().unwrap_or(1);
    process::run(process::cargo().args(["build", "--quiet", "--release", "--bin", "kvant"]))?;
    let example = ["--release", "--package", "kvant-cassandra", "--example", "driver_alone"];
    process::run(process::cargo().args(["build", "--quiet"]).args(example))?;
    let (buckets, rounds) = (number("buckets"), number("rounds"));
    cluster::with(nodes, false, || measure(nodes, buckets, rounds))?;
    Ok(true)
}

fn measure(nodes: u8, buckets: u64, rounds: u64) -> Result<(), String> {
    let bench = Bench { dir: process::target_dir()?.join("release") };
    let (of_cluster, of_memory) =
        (process::empty_dir("bench-cluster")?, process::empty_dir("bench-memory")?);
    let (nodes, buckets) = (nodes.to_string(), buckets.to_string());
    let kvant = bench.dir.join("kvant");
    let arguments = [
        "--cluster-keyspace",
        KEYSPACE,
        "--cluster-replicas",
        &nodes,
        "--cluster-buckets",
        &buckets,
    ];
    let mut cluster_server =
        Server::start(&kvant, &of_cluster, &[&["--engine", "cassandra"], &arguments[..]].concat())?;
    let mut memory_server = Server::start(&kvant, &of_memory, &["--engine", "memory"])?;
    for server in [&cluster_server, &memory_server] {
        bench.fill(server)?;
    }
    println!("nodes {nodes}, buckets {buckets}, {IN_FLIGHT} requests in flight, {KEYS} records");
    println!(
        "            driver  kvant  ratio   CPU a request in us: driver  kvant  own  memory  own/memory"
    );
    for (operation, count) in OPERATIONS {
        let mut figures: [Vec<Figure>; 3] = Default::default();
        for _ in 0..rounds {
            figures[0].push(bench.driver(operation, count)?);
            figures[1].push(bench.server(&cluster_server, operation, count)?);
            figures[2].push(bench.server(&memory_server, operation, count)?);
        }
        let [driver, kvant, memory] = figures.map(median);
        let own_us = kvant.cpu_us - driver.cpu_us;
        println!(
            "{operation:<8} {:>9.0} {:>6.0}  {:>5.2} {:>28.1} {:>6.1} {:>4.1} {:>7.1} {:>11.2}",
            driver.rate,
            kvant.rate,
            kvant.rate / driver.rate,
            driver.cpu_us,
            kvant.cpu_us,
            own_us,
            memory.cpu_us,
            own_us / memory.cpu_us,
        );
    }
    cluster_server.stop()?;
    memory_server.stop()
}

struct Bench {
    /// Of the built programs.
    dir: PathBuf,
}

impl Bench {
    fn fill(&self, server: &Server) -> Result<(), String> {
        let mut fill = Process::new(self.dir.join("kvant"));
        fill.args(["load", "fill", "-t", "1", "-c", "64", "--value-bytes", "100", "--keys"]);
        fill.arg(KEYS.to_string()).arg(format!("http://{}", server.address));
        process::run(fill.stdout(Stdio::null()))
    }

    fn driver(&self, operation: &str, count: u64) -> Result<Figure, String> {
        let mut driver = Process::new(self.dir.join("examples/driver_alone"));
        driver.args([NODE, KEYSPACE, operation]);
        driver.args([IN_FLIGHT, count, KEYS].map(|number| number.to_string()));
        let result: Value =
            serde_json::from_slice(&process::stdout_of(&mut driver)?).map_err(about("driver"))?;
        let figure = |name: &str| result[name].as_f64().ok_or(format!("no {name} in {result}"));
        let requests = figure("requests")?;
        let rate = requests / (figure("ns")? / 1e9);
        Ok(Figure { rate, cpu_us: figure("cpu_us")? / requests })
    }

    fn server(&self, server: &Server, operation: &str, count: u64) -> Result<Figure, String> {
        self.load(server, operation, count / 10)?;
        let begin_us = server.cpu_us()?;
        let rate = self.load(server, operation, count)?;
        Ok(Figure { rate, cpu_us: (server.cpu_us()? - begin_us) / count as f64 })
    }

    /// A closed loop of `count` requests; returns its rate.
    fn load(&self, server: &Server, operation: &str, count: u64) -> Result<f64, String> {
        let result = server.work.join("load.json");
        let mut load = Process::new(self.dir.join("kvant"));
        load.args(["load", "-t", "1", "-R", "0", "-c", &IN_FLIGHT.to_string()]);
        load.args(["-n", &count.to_string(), "--keys", &KEYS.to_string()]);
        load.args(["--workload", operation, "--assert", "errors==0"]);
        match operation {
            "put" => load.args(["--value-bytes", "100"]),
            "range" => load.args(["--range-records", "100"]),
            _ => &mut load,
        };
        load.arg("--json").arg(&result).arg(format!("http://{}", server.address));
        process::run(load.stdout(Stdio::null()))?;
        rate(&result)
    }
}

fn rate(path: &Path) -> Result<f64, String> {
    let result: Value =
        serde_json::from_str(&process::read(path)?).map_err(about(path.display()))?;
    let rate = result["phases"][0]["rate_achieved_per_s"].as_f64();
    rate.ok_or(format!("{}: no rate", path.display()))
}

/// The medians of rates and of CPU times.
fn median(figures: Vec<Figure>) -> Figure {
    let middle = |of: fn(&Figure) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Figure { rate: middle(|figure| figure.rate), cpu_us: middle(|figure| figure.cpu_us) }
}

impl Server {
    /// CPU time of the process so far.
    fn cpu_us(&self) -> Result<f64, String> {
        const TICKS_A_SECOND: f64 = 100.0;
        let path = format!("/proc/{}/stat", self.id());
        let stat = fs::read_to_string(&path).map_err(about(&path))?;
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace());
        let mut times = fields.into_iter().flatten().skip(11).take(2);
        let mut ticks = || times.next().and_then(|field| field.parse::<f64>().ok());
        let ticks = ticks().zip(ticks()).map(|(user, system)| user + system);
        Ok(ticks.ok_or(format!("{path} has no times"))? * 1e6 / TICKS_A_SECOND)
    }
}
