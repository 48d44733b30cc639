//! M/D/1 and M/M/1 queues at three loads: mean and 99th percentile of the response time.
//!
//! Short runs are compared with the exact queue of the arrivals and service times that the server
//! logged. This has no error of sampling, so that 10 s suffice for 2 %.
//!
//! Long runs are compared with theory, within 5 %, which are to be at least two standard errors.
//! Response times of a queue are correlated, the more so the higher its load. Simulated queues (25
//! of 50,000 requests each) had these standard errors of the 99th percentile, which are above those
//! of the mean; an error of 2.5 % takes `50,000 (error / 2.5 %)^2` requests:
//!
//! | load | M/D/1  | requests | M/M/1   | requests  |
//! |------|--------|----------|---------|-----------|
//! | 50 % | 1.3 %  | 118,000  | 2.7 %   | 59,000    |
//! | 80 % | 5.9 %  | 276,000  | 9.5 %   | 721,000   |
//! | 90 % | 10.9 % | 952,000  | 14.1 %  | 1,598,000 |
//!
//! That of M/D/1 at 50 % would take 14,000, with which one run was 5.6 % off; its length costs
//! nothing beside the others.
//!
//! Service times of long runs are shorter at higher loads: the time of network and threads, some
//! 100 us, stays below 4 % of the mean response time. Their servers keep the CPUs awake for that:
//! on a halted virtual CPU it was 240 us.
//!
//! Long runs are repeats of parts, so that a disturbance costs a part: the mean is that of all
//! requests of parts that count, the percentile that of their merged histogram. They must be at
//! least nine tenths of the requests above. All six take an hour, `--queue constant-50` 10 minutes.

#[path = "../../../crates/kvant-lab/tests/queue/exact.rs"]
mod exact;

use super::formulas;
use super::setting::{Setting, compare, json, print_without_figure};
use crate::process;
use exact::{Served, within};
use serde_json::Value;
use std::ops::Range;
use std::path::Path;

const TOLERANCE_EXACT: f64 = 0.02;
const TOLERANCE_THEORY: f64 = 0.05;
const SHORT_S: u64 = 10;
/// Parts of a long run.
const PARTS: u32 = 30;
/// Least part of the planned requests that must be in the figures.
const COUNTED_MIN: f64 = 0.9;

/// How long the queues run.
#[derive(Clone, Copy)]
pub(super) enum Length {
    Short { service_us: u64 },
    Long,
}

struct Queue {
    model: &'static str,
    load: f64,
    long_service_us: u64,
    long_requests: u64,
    /// More than the queue is ever long. Each is a thread of the server, which costs CPU time when
    /// the lab looks at it.
    connections: u64,
}

const QUEUES: &[Queue] = &[
    Queue::new("constant", 0.5, [2_000, 118_000, 16]),
    Queue::new("constant", 0.8, [1_000, 276_000, 64]),
    Queue::new("constant", 0.9, [500, 952_000, 128]),
    Queue::new("exponential", 0.5, [2_000, 59_000, 32]),
    Queue::new("exponential", 0.8, [1_000, 721_000, 96]),
    Queue::new("exponential", 0.9, [500, 1_598_000, 192]),
];

impl Queue {
    const fn new(
        model: &'static str,
        load: f64,
        [long_service_us, long_requests, connections]: [u64; 3],
    ) -> Queue {
        Queue { model, load, long_service_us, long_requests, connections }
    }

    fn name(&self) -> String {
        format!("{}-{:.0}", self.model, self.load * 100.0)
    }

    fn service_us(&self, length: Length) -> u64 {
        match length {
            Length::Short { service_us } => service_us,
            Length::Long => self.long_service_us,
        }
    }

    fn rate_per_s(&self, length: Length) -> f64 {
        self.load * 1e6 / self.service_us(length) as f64
    }

    /// Of one repeat.
    fn seconds(&self, length: Length) -> u64 {
        match length {
            Length::Short { .. } => SHORT_S,
            Length::Long => {
                let part = self.long_requests as f64 / f64::from(PARTS);
                (part / self.rate_per_s(length)).ceil() as u64
            }
        }
    }
}

/// The names of all queues.
pub(super) fn names() -> impl Iterator<Item = String> {
    QUEUES.iter().map(Queue::name)
}

/// All queues, or the one called `only`.
pub(super) fn check(setting: &Setting, length: Length, only: Option<&str>) -> Result<bool, String> {
    let is_wanted = |queue: &&Queue| only.is_none_or(|only| queue.name() == only);
    let queues: Vec<&Queue> = QUEUES.iter().filter(is_wanted).collect();
    let report = setting.run("queues", &plan(setting, &queues, length))?;
    let mut is_met = true;
    for queue in queues {
        is_met &= check_queue(setting, queue, length, &report, &setting.run_dir("queues"))?;
    }
    Ok(is_met)
}

fn repeats(length: Length) -> u32 {
    match length {
        Length::Short { .. } => 1,
        Length::Long => PARTS,
    }
}

fn plan(setting: &Setting, queues: &[&Queue], length: Length) -> String {
    let mut plan = format!("title = \"Queues\"\nrepeats = {}\n", repeats(length));
    let (mut workloads, mut phases) = (String::new(), String::from("[phase]\n"));
    for queue in queues {
        let (name, service_us) = (queue.name(), queue.service_us(length));
        let is_awake = matches!(length, Length::Long);
        plan += &setting.subject(&name, (queue.model, service_us), &name, is_awake);
        workloads += &format!(
            "[workload.{name}]\nmethod = \"GET\"\npath = \"/\"\narrival = \"poisson\"\n\
             connections = {}\ntimeout = \"60s\"\n",
            queue.connections
        );
        phases += &format!(
            "{name} = {{ rate = {:.3}, duration = \"{}s\", warmup = \"2s\", workloads = [\"{name}\"] }}\n",
            queue.rate_per_s(length),
            queue.seconds(length)
        );
    }
    plan + &workloads + &phases
}

fn check_queue(
    setting: &Setting,
    queue: &Queue,
    length: Length,
    report: &Value,
    run_dir: &Path,
) -> Result<bool, String> {
    let name = queue.name();
    let cases = report["run"]["cases"].as_array().ok_or("the report has no cases")?;
    let case = cases.iter().find(|case| case["subject"] == name.as_str());
    let case = &case.ok_or_else(|| format!("the report has no case of {name}"))?["id"];
    let figures = report["figures"].as_array().into_iter().flatten();
    let Some(figures) = figures.into_iter().find(|figures| figures["case"] == *case) else {
        print_without_figure(&name, report, case);
        return Ok(false);
    };
    let mut parts = Parts::default();
    for number in figures["attempts"].as_array().into_iter().flatten() {
        parts.add(report, run_dir, number)?;
    }
    let wanted =
        queue.rate_per_s(length) * queue.seconds(length) as f64 * f64::from(repeats(length));
    if (parts.count as f64) < wanted * COUNTED_MIN {
        println!("{name}: FAILED, only {} of {wanted:.0} requests count", parts.count);
        return Ok(false);
    }
    let spectra = report["spectra"].as_array().into_iter().flatten();
    let spectrum = spectra
        .into_iter()
        .find(|one| one["case"] == *case && one["what"] == "response")
        .ok_or_else(|| format!("{name}: the report has no spectrum"))?;
    let mean_ms = parts.mean_sum_ns / parts.count as f64 / 1e6;
    let p99_ms = value_at(spectrum, 0.99).ok_or_else(|| format!("{name}: no p99"))? / 1e6;
    let served = read_log(&setting.dir.join(format!("{name}.csv")))?;
    let (exact, written) = within(&served, &parts.measured);
    if exact.count() == 0 {
        return Err(format!("{name}: the server's log has no request of the measured time"));
    }
    let (exact_mean_ms, exact_p99_ms) = (exact.mean_ns() / 1e6, exact.quantile_ns(0.99) / 1e6);
    println!(
        "{name}: {} requests; the server itself wrote mean {:.3} ms, p99 {:.3} ms",
        exact.count(),
        written.mean_ns() / 1e6,
        written.quantile_ns(0.99) / 1e6
    );
    // The network's share of the shorter service times of long runs is greater.
    let tolerance = match length {
        Length::Short { .. } => TOLERANCE_EXACT,
        Length::Long => TOLERANCE_THEORY,
    };
    let mut is_met = compare("  mean, exact queue", mean_ms, exact_mean_ms, tolerance, "ms")
        & compare("  p99, exact queue", p99_ms, exact_p99_ms, tolerance, "ms");
    if matches!(length, Length::Long) {
        let service_ms = queue.service_us(length) as f64 / 1e3;
        let (mean, p99) = match queue.model {
            "constant" => formulas::constant(queue.load),
            _ => formulas::exponential(queue.load),
        };
        is_met &= compare("  mean, theory", mean_ms, mean * service_ms, TOLERANCE_THEORY, "ms");
        is_met &= compare("  p99, theory", p99_ms, p99 * service_ms, TOLERANCE_THEORY, "ms");
    }
    Ok(is_met)
}

/// The attempts of a queue that count.
#[derive(Default)]
struct Parts {
    /// Of the generator.
    count: u64,
    /// The sum of its response times.
    mean_sum_ns: f64,
    /// When they were measured, monotonic.
    measured: Vec<Range<u64>>,
}

impl Parts {
    fn add(&mut self, report: &Value, run_dir: &Path, number: &Value) -> Result<(), String> {
        let attempts = report["attempts"].as_array().into_iter().flatten();
        let attempt = attempts.into_iter().find(|attempt| attempt["number"] == *number);
        let start_ns = attempt.and_then(|attempt| attempt["measure_start_ns"].as_u64());
        let start_ns = start_ns.ok_or("the report lacks the begin of an attempt")?;
        let load = format!("attempts/{:04}/load.json", number.as_u64().unwrap_or(0));
        let load = json(&run_dir.join(load))?;
        let phase = &load["phases"][0];
        let response = &phase["response_with_unanswered"];
        let numbers = (phase["measured_ns"].as_u64(), response["count"].as_u64());
        let (Some(length_ns), Some(count)) = numbers else {
            return Err("load.json has no length or count".to_owned());
        };
        let mean_ns = response["mean_ns"].as_f64().ok_or("load.json has no mean")?;
        self.count += count;
        self.mean_sum_ns += mean_ns * count as f64;
        self.measured.push(start_ns..start_ns + length_ns);
        Ok(())
    }
}

/// The value at a percentile of a spectrum: linear in the logarithm of `1 / (1 - percentile)`
/// between two points, as the tail of a queue is.
fn value_at(spectrum: &Value, part: f64) -> Option<f64> {
    let wanted = 1.0 / (1.0 - part);
    let points = spectrum["points"].as_array()?;
    let point = |at: usize| Some((points[at][0].as_f64()?, points[at][1].as_f64()?));
    let above = points.iter().position(|one| one[0].as_f64().is_some_and(|of| of >= wanted))?;
    let (high, high_ns) = point(above)?;
    let (low, low_ns) = point(above.checked_sub(1)?)?;
    let weight = (wanted / low).ln() / (high / low).ln();
    Some(low_ns + (high_ns - low_ns) * weight)
}

/// The lines of the server: arrival, service time, response.
fn read_log(path: &Path) -> Result<Vec<Served>, String> {
    let text = process::read(path)?;
    let request = |line: &str| {
        let mut numbers = line.split(',').map(|field| field.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        Some((next()?, next()?, next()?))
    };
    let lines = text.lines().map(|line| request(line).ok_or_else(|| format!("no request: {line}")));
    lines.collect()
}
