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
//! | 50 % | 1.3 %  | 14,000   | 2.7 %   | 59,000    |
//! | 80 % | 5.9 %  | 276,000  | 9.5 %   | 721,000   |
//! | 90 % | 10.9 % | 952,000  | 14.1 %  | 1,598,000 |
//!
//! Service times of long runs are shorter at higher loads: the time of network and threads, some 50
//! us, stays below 2 % of the mean response time.

#[path = "../../../crates/kvant-lab/tests/queue/exact.rs"]
mod exact;

use super::formulas;
use super::setting::{Setting, compare, json, print_without_figure};
use crate::process;
use exact::{Served, within};
use serde_json::Value;
use std::path::Path;

const TOLERANCE_EXACT: f64 = 0.02;
const TOLERANCE_THEORY: f64 = 0.05;
const SHORT_S: u64 = 10;

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
}

const QUEUES: &[Queue] = &[
    Queue { model: "constant", load: 0.5, long_service_us: 2_000, long_requests: 14_000 },
    Queue { model: "constant", load: 0.8, long_service_us: 1_000, long_requests: 276_000 },
    Queue { model: "constant", load: 0.9, long_service_us: 500, long_requests: 952_000 },
    Queue { model: "exponential", load: 0.5, long_service_us: 2_000, long_requests: 59_000 },
    Queue { model: "exponential", load: 0.8, long_service_us: 1_000, long_requests: 721_000 },
    Queue { model: "exponential", load: 0.9, long_service_us: 500, long_requests: 1_598_000 },
];

impl Queue {
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

    fn seconds(&self, length: Length) -> u64 {
        match length {
            Length::Short { .. } => SHORT_S,
            Length::Long => (self.long_requests as f64 / self.rate_per_s(length)).ceil() as u64,
        }
    }
}

/// All queues.
pub(super) fn check(setting: &Setting, length: Length) -> Result<bool, String> {
    let mut plan = String::from("title = \"Queues\"\nrepeats = 1\n");
    let (mut workloads, mut phases) = (String::new(), String::from("[phase]\n"));
    for queue in QUEUES {
        let (name, service_us) = (queue.name(), queue.service_us(length));
        plan += &setting.subject(&name, queue.model, service_us, &name);
        // More connections than the queue is ever long.
        workloads += &format!(
            "[workload.{name}]\nmethod = \"GET\"\npath = \"/\"\narrival = \"poisson\"\n\
             connections = 256\ntimeout = \"60s\"\n"
        );
        phases += &format!(
            "{name} = {{ rate = {:.3}, duration = \"{}s\", warmup = \"2s\", workloads = [\"{name}\"] }}\n",
            queue.rate_per_s(length),
            queue.seconds(length)
        );
    }
    let report = setting.run("queues", &(plan + &workloads + &phases))?;
    let mut is_met = true;
    for queue in QUEUES {
        is_met &= check_queue(setting, &report, queue, length)?;
    }
    Ok(is_met)
}

fn check_queue(
    setting: &Setting,
    report: &Value,
    queue: &Queue,
    length: Length,
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
    let response_ms = |figure: &str| {
        let all = figures["response_ns"].as_array().into_iter().flatten();
        let of_name = all.into_iter().find(|one| one[0] == figure);
        let ns = of_name.and_then(|one| one[1]["median"].as_f64());
        ns.map(|ns| ns / 1e6).ok_or_else(|| format!("{name}: the report has no {figure}"))
    };
    let (mean_ms, p99_ms) = (response_ms("mean")?, response_ms("p99")?);

    let number = &figures["attempts"][0];
    let attempts = report["attempts"].as_array().into_iter().flatten();
    let attempt = attempts.into_iter().find(|attempt| attempt["number"] == *number);
    let start_ns = attempt.and_then(|attempt| attempt["measure_start_ns"].as_u64());
    let start_ns = start_ns.ok_or("the report lacks the begin of an attempt")?;
    let load = format!("attempts/{:04}/load.json", number.as_u64().unwrap_or(0));
    let load = json(&setting.run_dir("queues").join(load))?;
    let length_ns = load["phases"][0]["measured_ns"].as_u64().ok_or("load.json has no length")?;
    let served = read_log(&setting.dir.join(format!("{name}.csv")))?;
    let (exact, written) = within(&served, start_ns, start_ns + length_ns);
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
    let mut is_met = compare("  mean, exact queue", mean_ms, exact_mean_ms, TOLERANCE_EXACT, "ms")
        & compare("  p99, exact queue", p99_ms, exact_p99_ms, TOLERANCE_EXACT, "ms");
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
