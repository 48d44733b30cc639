//! Figures of reports against a server whose behaviour is known.
//!
//! The machine of these runs is calm by its account, and is not: what really disturbs them is found
//! in the server's own times, and leads to another run.

use crate::conduct::TempDir;
use crate::exact;
use crate::fake_machine::FakeMachine;
use crate::queue::{Queue, Service};
use kvant_env::Env;
use kvant_lab::conduct::{self, Options, Progress, Stop};
use kvant_lab::model::Report;
use kvant_lab::plan::Plan;
use kvant_lab::{analyse, record::AttemptVerdict};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs on a machine that others may disturb.
const RUNS_MAX: usize = 8;

/// Runs a plan against a queue and analyses the run.
fn report(workload: &str, phase: &str, queue: &Queue) -> Report {
    let dir = TempDir::new();
    let text = format!(
        "repeats = 1\nobjectives = [\"p99<200ms\"]\n\
         [subject.queue]\nurl = \"http://{}/\"\nready = \"/\"\nfixed-response = true\n\
         [workload.all]\nmethod = \"GET\"\npath = \"/\"\n{workload}\n\
         [phase]\nload = {{ {phase} }}\n",
        queue.address
    );
    let plan = Plan::parse(&text, Path::new("queue.toml"));
    let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
    let machine = FakeMachine::start(&dir.0.join("proc"), || false);
    let options = Options {
        dir: dir.0.join("run"),
        resumes: false,
        scratch: None,
        program: PathBuf::from("kvant"),
        proc: machine.proc(),
    };
    let (env, stop) = (Env::posix(), Stop::default());
    conduct::run(&plan, &options, &env, &stop, &mut Progress::none()).unwrap();
    analyse::analyse(&options.dir).unwrap()
}

#[test]
fn response_times_are_those_of_the_exact_queue() {
    const SERVICE: Duration = Duration::from_millis(20);
    const TOLERANCE: f64 = 0.03;
    let mut seen = Vec::new();
    for run in 0..RUNS_MAX {
        let queue = Queue::start(0, Service::Exponential, SERVICE, run as u64).unwrap();
        // 80 % of the capacity.
        let workload = "arrival = \"poisson\"\nconnections = 32\ntimeout = \"20s\"";
        let phase = "rate = 40, duration = \"2500ms\", warmup = \"300ms\"";
        let report = report(workload, phase, &queue);
        let served = queue.take_served();
        let Some(figures) = report.figures.first() else {
            seen.push(format!("no attempt counts: {:?}", report.attempts));
            continue;
        };
        let is_it = |attempt: &&kvant_lab::record::Attempt| {
            attempt.number == figures.attempts[0] && attempt.verdict == AttemptVerdict::Valid
        };
        let start_ns = report.attempts.iter().find(is_it).unwrap().measure_start_ns;
        let served: Vec<exact::Served> =
            served.iter().map(|one| (one.arrival_ns, one.service_ns, one.written_ns)).collect();
        let end_ns = start_ns + report.run.cases[0].duration_ns;
        let (exact, written) = exact::within(&served, std::slice::from_ref(&(start_ns..end_ns)));
        assert!(exact.count() > 50, "{} requests", exact.count());
        let reported = |name: &str| {
            let of_name = figures.response_ns.iter().find(|(known, _)| known == name);
            of_name.unwrap().1.median
        };
        let (mean, p99) = (reported("mean"), reported("p99"));
        let apart = [mean / exact.mean_ns() - 1.0, p99 / exact.quantile_ns(0.99) - 1.0];
        if apart.iter().all(|apart| apart.abs() < TOLERANCE) {
            return;
        }
        seen.push(format!(
            "mean {mean} and p99 {p99}, exact {} and {}, written {} and {}",
            exact.mean_ns(),
            exact.quantile_ns(0.99),
            written.mean_ns(),
            written.quantile_ns(0.99)
        ));
    }
    panic!("{seen:#?}");
}

#[test]
fn the_breaking_point_is_the_capacity() {
    const CAPACITY_PER_S: f64 = 2_000.0;
    // The search stops within 3 % below the least rate that failed, which is above the capacity by
    // what a step of 300 ms cannot tell: half a per cent, and the requests in flight.
    const TOLERANCE: f64 = 0.045;
    let mut seen = Vec::new();
    for _ in 0..RUNS_MAX {
        let queue = Queue::start(0, Service::Constant, Duration::from_micros(500), 1).unwrap();
        let phase = "find-max = true, duration = \"300ms\", warmup = \"50ms\"";
        let report = report("connections = 8", phase, &queue);
        let found = report.maxima.first().and_then(|found| found.rate_per_s);
        let rate = found.map(|rate| rate.median);
        if rate.is_some_and(|rate| (rate / CAPACITY_PER_S - 1.0).abs() < TOLERANCE) {
            return;
        }
        seen.push((rate, report.attempts));
    }
    panic!("{seen:#?}");
}

/// A constant rate far beyond the limit never comes to requests after a warm-up.
#[test]
fn a_load_beside_beyond_the_limit_is_measured() {
    let queue = Queue::start(0, Service::Constant, Duration::from_millis(5), 1).unwrap();
    let workload = "connections = 1\n\
                    beside = { method = \"GET\", path = \"/\", rate = 2000, connections = 2 }";
    let report = report(workload, "rate = 5, duration = \"600ms\", warmup = \"600ms\"", &queue);
    let verdicts: Vec<&AttemptVerdict> = report.attempts.iter().map(|one| &one.verdict).collect();
    assert!(!verdicts.iter().any(|one| matches!(one, AttemptVerdict::Failed(_))), "{verdicts:?}");
}

#[test]
fn a_factor_beyond_the_limit_is_measured() {
    let mut attempts = Vec::new();
    for _ in 0..RUNS_MAX {
        let queue = Queue::start(0, Service::Constant, Duration::from_millis(5), 1).unwrap();
        let text = "find-max = true, duration = \"300ms\", warmup = \"50ms\" }\n\
                    beyond = { factors = [10], duration = \"500ms\", warmup = \"500ms\"";
        let report = report("connections = 2", text, &queue);
        let beyond = report.figures.iter().find(|figures| figures.step == "factor 10");
        if let Some(beyond) = beyond {
            assert!(
                beyond.planned_per_s.is_some_and(|rate| rate > 1_000.0),
                "{:?}",
                report.attempts
            );
            return;
        }
        attempts.push(report.attempts);
    }
    panic!("{attempts:#?}");
}
