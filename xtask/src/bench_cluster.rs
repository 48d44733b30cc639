//! `cargo xtask bench cluster`: Kvant's server on a cluster, beside the driver alone in a loop.
//!
//! Both do the same requests on the same nodes, by turns: driver, server, server, driver in a
//! round, the other way round in the next, so that what changes with time falls on both. Before
//! that the nodes are warmed up: they compile what an operation needs, and the CPU time of a
//! request falls, to less than half. For that they have all processors, and after each pass the
//! time to compile what it has shown.
//!
//! The last processor of this machine is the programs', the others are the nodes', as if these were
//! machines of their own: otherwise a rate says how much CPU time nodes, server and generator need
//! together, which `--shared` shows.
//!
//! A rate is that of the nodes only while the programs' processor has time left: the generator of
//! the server's load runs there, too, and the driver alone needs none. So each rate comes with what
//! it needs of both.
//!
//! What the driver costs alone is subtracted from the CPU time of the server for each request, and
//! the rest compared with a whole request of the engine `memory`, whose part beside HTTP is small,
//! at the same rate: more requests a second cost less each.

use crate::cluster;
use crate::process::{self, Verdict, about};
use crate::server::Server;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::Value;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::Duration;

const NODE: &str = "127.0.0.1:9042";
const KEYS: u64 = 100_000;
/// Nodes that use less CPU time in a second, in microseconds each, are at rest.
const REST_US: f64 = 50_000.0;
const REST_WAIT_MAX_S: u64 = 60;
const OPERATIONS: [&str; 3] = ["put", "get", "range"];
/// Requests of the first pass of a warm-up. Others, and measurements, have as many as the slower of
/// driver and server does in [`MEASUREMENT_S`], and at least these.
const REQUESTS_MIN: u64 = 500;
const MEASUREMENT_S: f64 = 3.0;
/// Nodes are steady if in this many passes in a row a request took at least this part of the least
/// CPU time before.
const STEADY_PASSES: usize = 3;
const STEADY_SHARE: f64 = 0.95;
const WARM_UP_PASSES_MAX: usize = 40;

pub(crate) fn command() -> Command {
    let nodes = Arg::new("nodes").long("nodes").value_name("N").default_value("1");
    let buckets = Arg::new("buckets").long("buckets").value_name("N,...").value_delimiter(',');
    let buckets = buckets.default_value("16");
    let only = Arg::new("only").long("only").value_name("OPERATION");
    let shared = Arg::new("shared").long("shared").action(ArgAction::SetTrue);
    Command::new("cluster")
        .about(
            "Kvant's server on a cluster, beside the driver alone; needs what `cluster up` needs",
        )
        .arg(nodes.value_parser(value_parser!(u8).range(1..=3)).help("Nodes to start"))
        .arg(process::number("in-flight", "Requests at a time").default_value("64"))
        .arg(buckets.value_parser(value_parser!(u64)).help("Partitions: each number in turn"))
        .arg(only.value_parser(OPERATIONS).help("Of operations, this one"))
        .arg(process::number("rounds", "Measurements of each kind").default_value("3"))
        .arg(shared.help("Let nodes and programs share all processors"))
}

/// What a measurement came to.
#[derive(Clone, Copy)]
struct Figure {
    rate: f64,
    /// CPU time of a request in the driver's program or in the server.
    cpu_us: f64,
    generator_us: f64,
    /// In all nodes.
    nodes_us: f64,
}

/// Numbers of processors.
#[derive(Clone, Copy)]
struct Processors {
    all: usize,
    is_shared: bool,
}

impl Processors {
    fn of_programs(self) -> usize {
        if self.is_shared { self.all } else { 1 }
    }

    fn of_nodes(self) -> usize {
        if self.is_shared { self.all } else { self.all - 1 }
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let nodes = matches.get_one::<u8>("nodes").copied().unwrap_or(1);
    process::run(process::cargo().args(["build", "--quiet", "--release", "--bin", "kvant"]))?;
    let example = ["--release", "--package", "kvant-cassandra", "--example", "driver_alone"];
    process::run(process::cargo().args(["build", "--quiet"]).args(example))?;
    let number = |name| matches.get_one::<u64>(name).copied().unwrap_or(1);
    let (rounds, in_flight) = (number("rounds"), number("in-flight"));
    let buckets: Vec<u64> = matches.get_many("buckets").into_iter().flatten().copied().collect();
    let only = matches.get_one::<String>("only");
    let operations: Vec<_> =
        OPERATIONS.into_iter().filter(|name| only.is_none_or(|only| only == name)).collect();
    cluster::with(nodes, false, || {
        let all = thread::available_parallelism().map_err(about("processors"))?.get();
        let processors = Processors { all, is_shared: matches.get_flag("shared") };
        if !processors.is_shared {
            if all == 1 {
                return Err("there is one processor: give --shared".into());
            }
            // Programs that this one starts, too.
            pin(std::process::id(), all - 1..=all - 1)?;
        }
        let mut buckets = buckets.into_iter();
        buckets.try_for_each(|buckets| {
            measure(nodes, buckets, in_flight, rounds, &operations, processors)
        })
    })?;
    Ok(true)
}

fn pin(pid: u32, processors: RangeInclusive<usize>) -> Result<(), String> {
    let list = format!("{}-{}", processors.start(), processors.end());
    let mut taskset = Process::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid", &list, &pid.to_string()]);
    process::run(taskset.stdout(Stdio::null()))
}

fn measure(
    nodes: u8,
    buckets: u64,
    in_flight: u64,
    rounds: u64,
    operations: &[&'static str],
    processors: Processors,
) -> Result<(), String> {
    let keyspace = format!("bench_{buckets}");
    let node_ids: Result<_, _> = (1..=nodes).map(cluster::process_of).collect();
    let dir = process::target_dir()?.join("release");
    let bench = Bench { dir, keyspace, in_flight, node_ids: node_ids? };
    let (of_cluster, of_memory) =
        (process::empty_dir("bench-cluster")?, process::empty_dir("bench-memory")?);
    let (nodes, buckets) = (nodes.to_string(), buckets.to_string());
    let kvant = bench.dir.join("kvant");
    let arguments = [
        "--cluster-keyspace",
        &bench.keyspace,
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
    println!("nodes {nodes}, buckets {buckets}, {in_flight} requests in flight, {KEYS} records");
    println!("                  a second   CPU a request in us          processors used, of 1");
    println!("                             program  generator   nodes   programs  nodes");
    for &operation in operations {
        bench.pin_nodes(processors.all)?;
        let count = bench.warm_up(&cluster_server, operation)?;
        bench.pin_nodes(processors.of_nodes())?;
        let (mut driver, mut kvant, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            let is_even = round % 2 == 0;
            for is_driver in [is_even, !is_even, !is_even, is_even] {
                if is_driver {
                    driver.push(bench.driver(operation, count)?);
                } else {
                    kvant.push(bench.server(&cluster_server, operation, count, None)?);
                }
            }
            let rate = median(&kvant).rate;
            memory.push(bench.server(&memory_server, operation, count, Some(rate))?);
        }
        let [driver, kvant, memory] = [driver, kvant, memory].map(|figures| median(&figures));
        for (name, figure) in [("driver", driver), ("kvant", kvant), ("memory", memory)] {
            figure.print(operation, name, processors);
        }
        let own_us = kvant.cpu_us - driver.cpu_us;
        println!(
            "{operation:<8} ratio     {:>8.2}   own {own_us:.1} us, {:.2} of memory",
            kvant.rate / driver.rate,
            own_us / memory.cpu_us,
        );
    }
    cluster_server.stop()?;
    memory_server.stop()
}

impl Figure {
    fn print(&self, operation: &str, name: &str, processors: Processors) {
        let used = |us: f64, count: usize| self.rate * us / 1e6 / count as f64;
        println!(
            "{operation:<8} {name:<8} {:>9.0} {:>9.1} {:>10.1} {:>7.1} {:>10.2} {:>6.2}",
            self.rate,
            self.cpu_us,
            self.generator_us,
            self.nodes_us,
            used(self.cpu_us + self.generator_us, processors.of_programs()),
            used(self.nodes_us, processors.of_nodes()),
        );
    }
}

struct Bench {
    /// Of the built programs.
    dir: PathBuf,
    keyspace: String,
    in_flight: u64,
    node_ids: Vec<u32>,
}

impl Bench {
    /// Gives the nodes the first `count` processors.
    fn pin_nodes(&self, count: usize) -> Result<(), String> {
        self.node_ids.iter().try_for_each(|id| pin(*id, 0..=count - 1))
    }

    fn fill(&self, server: &Server) -> Result<(), String> {
        let mut fill = Process::new(self.dir.join("kvant"));
        fill.args(["load", "fill", "-t", "1", "-c", "64", "--value-bytes", "100", "--keys"]);
        fill.arg(KEYS.to_string()).arg(format!("http://{}", server.address));
        process::run(fill.stdout(Stdio::null()))
    }

    fn driver(&self, operation: &str, count: u64) -> Result<Figure, String> {
        let mut driver = Process::new(self.dir.join("examples/driver_alone"));
        driver.args([NODE, &self.keyspace, operation]);
        driver.args([self.in_flight, count, KEYS].map(|number| number.to_string()));
        let begin_us = self.nodes_us()?;
        let result: Value =
            serde_json::from_slice(&process::stdout_of(&mut driver)?).map_err(about("driver"))?;
        let figure = |name: &str| result[name].as_f64().ok_or(format!("no {name} in {result}"));
        let requests = figure("requests")?;
        let rate = requests / (figure("ns")? / 1e9);
        // A tenth more requests come first.
        let nodes_us = (self.nodes_us()? - begin_us) / requests / 1.1;
        let cpu_us = figure("cpu_us")? / requests;
        Ok(Figure { rate, cpu_us, generator_us: 0.0, nodes_us })
    }

    /// Has the nodes compile what the operation needs, by driver and server in turn. Returns a
    /// number of requests that takes some seconds.
    fn warm_up(&self, server: &Server, operation: &str) -> Result<u64, String> {
        let (mut count, mut least_us, mut steady_count) = (REQUESTS_MIN, f64::INFINITY, 0);
        for number in 1..=WARM_UP_PASSES_MAX {
            let driver = self.driver(operation, count)?;
            let kvant = self.server(server, operation, count, None)?;
            self.wait_for_rest()?;
            count = ((driver.rate.min(kvant.rate) * MEASUREMENT_S) as u64).max(REQUESTS_MIN);
            if number == 1 {
                // Mostly the start of a session.
                continue;
            }
            let nodes_us = driver.nodes_us + kvant.nodes_us;
            steady_count = if nodes_us < STEADY_SHARE * least_us { 0 } else { steady_count + 1 };
            least_us = nodes_us.min(least_us);
            if steady_count == STEADY_PASSES {
                println!("{operation:<8} warm after {number} passes; {count} requests each");
                return Ok(count);
            }
        }
        println!("{operation:<8} nodes are not steady after {WARM_UP_PASSES_MAX} passes");
        Ok(count)
    }

    /// Waits until nothing goes on in the nodes: flushes, compactions, compilation.
    fn wait_for_rest(&self) -> Result<(), String> {
        let rest_us = REST_US * self.node_ids.len() as f64;
        for _ in 0..REST_WAIT_MAX_S {
            let begin_us = self.nodes_us()?;
            thread::sleep(Duration::from_secs(1));
            if self.nodes_us()? - begin_us < rest_us {
                return Ok(());
            }
        }
        println!("the nodes have not come to rest in {REST_WAIT_MAX_S} s");
        Ok(())
    }

    fn nodes_us(&self) -> Result<f64, String> {
        self.node_ids.iter().map(|id| cpu_us(*id)).sum()
    }

    /// At `rate`, or as fast as it goes.
    fn server(
        &self,
        server: &Server,
        operation: &str,
        count: u64,
        rate: Option<f64>,
    ) -> Result<Figure, String> {
        self.load(server, operation, count / 10, rate)?;
        let (begin_us, nodes_begin_us) = (cpu_us(server.id())?, self.nodes_us()?);
        let result = self.load(server, operation, count, rate)?;
        let figure = |name: &str| result[name].as_f64().ok_or(format!("no {name} in {result}"));
        let a_request = |us: f64| us / count as f64;
        Ok(Figure {
            rate: figure("rate_achieved_per_s")?,
            generator_us: a_request(figure("cpu_ns")? / 1e3),
            cpu_us: a_request(cpu_us(server.id())? - begin_us),
            nodes_us: a_request(self.nodes_us()? - nodes_begin_us),
        })
    }

    /// `count` requests, in a closed loop unless there is a rate; returns what the generator has
    /// measured.
    fn load(
        &self,
        server: &Server,
        operation: &str,
        count: u64,
        rate: Option<f64>,
    ) -> Result<Value, String> {
        let result = server.work.join("load.json");
        let mut load = Process::new(self.dir.join("kvant"));
        let planned = format!("{:.0}", rate.unwrap_or(0.0));
        load.args(["load", "-t", "1", "-R", &planned, "-c", &self.in_flight.to_string()]);
        load.args(["-n", &count.to_string(), "--keys", &KEYS.to_string()]);
        load.args(["--workload", operation, "--assert", "errors==0"]);
        match operation {
            "put" => load.args(["--value-bytes", "100"]),
            "range" => load.args(["--range-records", "100"]),
            _ => &mut load,
        };
        load.arg("--json").arg(&result).arg(format!("http://{}", server.address));
        process::run(load.stdout(Stdio::null()).stderr(Stdio::null()))?;
        let text = process::read(&result)?;
        let mut result: Value = serde_json::from_str(&text).map_err(about(result.display()))?;
        Ok(result["phases"][0].take())
    }
}

/// The medians of rates and of CPU times.
fn median(figures: &[Figure]) -> Figure {
    let middle = |of: fn(&Figure) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Figure {
        rate: middle(|figure| figure.rate),
        cpu_us: middle(|figure| figure.cpu_us),
        generator_us: middle(|figure| figure.generator_us),
        nodes_us: middle(|figure| figure.nodes_us),
    }
}

/// CPU time of a process so far.
fn cpu_us(id: u32) -> Result<f64, String> {
    const TICKS_A_SECOND: f64 = 100.0;
    let path = format!("/proc/{id}/stat");
    let stat = fs::read_to_string(&path).map_err(about(&path))?;
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace());
    let mut times = fields.into_iter().flatten().skip(11).take(2);
    let mut ticks = || times.next().and_then(|field| field.parse::<f64>().ok());
    let ticks = ticks().zip(ticks()).map(|(user, system)| user + system);
    Ok(ticks.ok_or(format!("{path} has no times"))? * 1e6 / TICKS_A_SECOND)
}
