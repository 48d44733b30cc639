//! Runs load against a server, with the checks that hold for every run.

use kvant_env::Env;
use kvant_load::request::{HeaderBlock, append_request};
use kvant_load::source::fixed::FixedSource;
use kvant_load::{
    Arrival, Load, LoadConfig, OpNames, Outcome, Phase, Rate, RequestSource, StatusSet, Target,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const MS: u64 = 1_000_000;

/// Ends an experiment whose timing failed.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}
pub(crate) use ensure;

/// Runs an experiment that checks timing with `ensure!`. What must hold on any machine is asserted
/// instead, and fails at once.
///
/// A busy machine spoils timing. So a watch runs during each try, and a try that failed while
/// threads were delayed is repeated. If the machine stays busy, the experiment ends without a
/// verdict, and says so.
pub(crate) fn experiment(make: impl Fn() -> Result<(), String>) {
    const TRIES: usize = 5;
    const DISTURBED_TRIES: usize = 8;
    let (mut problems, mut disturbed) = (Vec::new(), Vec::new());
    loop {
        let watch = Watch::start();
        let Err(problem) = make() else { return };
        let late = watch.worst();
        if late < DISTURBANCE {
            problems.push(problem);
            assert!(problems.len() < TRIES, "{TRIES} tries failed: {problems:#?}");
        } else {
            disturbed.push(format!("{problem}, and threads were kept from running for {late:?}"));
            if disturbed.len() == DISTURBED_TRIES {
                eprintln!("timing not judged, the machine is too busy: {disturbed:#?}");
                return;
            }
        }
    }
}

/// Threads that are delayed for longer than this make timing meaningless.
const DISTURBANCE: Duration = Duration::from_millis(10);

/// Threads that repeatedly sleep for a millisecond and measure how late they wake up.
struct Watch {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Watch {
    fn start() -> Watch {
        const NAP: Duration = Duration::from_millis(1);
        let is_over = Arc::new(AtomicBool::new(false));
        // The time before a watch thread starts, and between its sleeps, counts too.
        let begin = Instant::now();
        let watch = move |is_over: Arc<AtomicBool>| {
            let (mut last, mut worst) = (begin, Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(NAP);
                let now = Instant::now();
                worst = worst.max((now - last).saturating_sub(NAP));
                last = now;
            }
            worst
        };
        let threads = (0..2).map(|_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || watch(is_over))
        });
        Watch { threads: threads.collect(), is_over }
    }

    fn worst(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        let worst =
            self.threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
        worst.max().unwrap_or_default()
    }
}

/// The configuration of a load.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) url: String,
    pub(crate) threads: usize,
    pub(crate) connections: usize,
    pub(crate) timeout: Duration,
    pub(crate) pipeline: usize,
    pub(crate) arrival: Arrival,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) ca_pem: Option<String>,
}

impl Setup {
    pub(crate) fn new(url: impl Into<String>) -> Setup {
        Setup {
            url: url.into(),
            threads: 1,
            connections: 1,
            timeout: Duration::from_secs(10),
            pipeline: 1,
            arrival: Arrival::Uniform,
            headers: Vec::new(),
            ca_pem: None,
        }
    }

    pub(crate) fn connections(self, connections: usize) -> Setup {
        Setup { connections, ..self }
    }

    pub(crate) fn threads(self, threads: usize) -> Setup {
        Setup { threads, ..self }
    }

    pub(crate) fn timeout(self, timeout: Duration) -> Setup {
        Setup { timeout, ..self }
    }

    pub(crate) fn pipeline(self, pipeline: usize) -> Setup {
        Setup { pipeline, ..self }
    }

    pub(crate) fn arrival(self, arrival: Arrival) -> Setup {
        Setup { arrival, ..self }
    }

    pub(crate) fn header(mut self, name: &str, value: String) -> Setup {
        self.headers.push((name.to_owned(), value));
        self
    }

    pub(crate) fn ca_pem(self, pem: String) -> Setup {
        Setup { ca_pem: Some(pem), ..self }
    }

    /// Starts the threads.
    pub(crate) fn start(&self) -> kvant_base::Result<Load> {
        let target = Target::parse(&self.url)?.resolve()?;
        let ops = OpNames::default();
        let mut request = Vec::new();
        let headers = HeaderBlock::new(&target, &self.headers)?;
        append_request(&mut request, "GET", &target.path, &headers, None);
        let source = FixedSource::new(&[request], ops.intern("GET"), false, self.pipeline);
        let config = LoadConfig {
            targets: vec![target],
            thread_count: self.threads,
            connection_count: self.connections,
            timeout: self.timeout,
            arrival: self.arrival,
            seed: 1,
            ok_statuses: StatusSet::default(),
            batch_latency: false,
            wrk2_exact: false,
            spin: Duration::ZERO,
            interval: Duration::from_secs(1),
            ca_pem: self.ca_pem.clone().map(String::into_bytes),
        };
        let sources =
            (0..self.threads).map(|_| Box::new(source.clone()) as Box<dyn RequestSource>).collect();
        Load::start(config, sources, ops, Env::posix())
    }

    /// Runs one phase at this rate and checks [`check_sums`].
    pub(crate) fn run(&self, rate: f64, duration: Duration) -> Outcome {
        let mut load = self.start().unwrap();
        let outcome = run(&mut load, rate, duration);
        load.stop();
        outcome
    }
}

/// Runs one phase and checks [`check_sums`].
pub(crate) fn run(load: &mut Load, rate: f64, duration: Duration) -> Outcome {
    let phase = Phase {
        rate: Rate::Constant(rate),
        warmup: Duration::ZERO,
        duration,
        request_count_max: None,
    };
    let outcome = load.run(&phase, &mut |_| true).unwrap();
    let planned = (rate * duration.as_secs_f64()).ceil() as u64;
    assert_eq!(outcome.total.planned, planned, "{}", text(&outcome));
    assert!(outcome.measured_ns.abs_diff(duration.as_nanos() as u64) < 1_000, "{}", text(&outcome));
    check_sums(&outcome);
    outcome
}

/// Each planned request is completed, failed, in flight or unsent, exactly once.
pub(crate) fn check_sums(outcome: &Outcome) {
    let total = &outcome.total;
    let errors = &total.errors;
    let ended = total.completed + errors.timeout + errors.read + errors.write;
    assert_eq!(total.planned, ended + outcome.in_flight + outcome.backlog, "{}", text(outcome));
    assert_eq!(total.sent, ended - errors.write + outcome.in_flight, "{}", text(outcome));
    assert_eq!(
        outcome.unanswered.count(),
        outcome.in_flight + outcome.backlog,
        "{}",
        text(outcome)
    );
    assert_eq!(outcome.response().count(), total.completed + errors.timeout, "{}", text(outcome));
    assert_eq!(outcome.service().count(), total.completed + errors.timeout, "{}", text(outcome));
    let statuses: u64 = total.ops.iter().flat_map(|op| &op.statuses).map(|(_, count)| count).sum();
    assert_eq!(statuses, total.completed, "{}", text(outcome));
    let by_thread: u64 = outcome.threads.iter().map(|thread| thread.completed).sum();
    assert_eq!(by_thread, total.completed, "{}", text(outcome));
}

/// Checks that the generator slept most of the time. A spinning thread uses all of it, a sleeping
/// one a few per cent; a guest system may charge a thread for time that the hypervisor took.
pub(crate) fn check_no_spin(outcome: &Outcome) -> Result<(), String> {
    let threads = outcome.threads.len() as u64;
    ensure!(outcome.total.cpu_ns * 2 < outcome.measured_ns * threads, "{}", text(outcome));
    Ok(())
}

/// The counts, for messages.
pub(crate) fn text(outcome: &Outcome) -> String {
    let total = &outcome.total;
    format!(
        "planned {} sent {} completed {} in flight {} backlog {} {:?} cpu {} ms of {} ms",
        total.planned,
        total.sent,
        total.completed,
        outcome.in_flight,
        outcome.backlog,
        total.errors,
        total.cpu_ns / MS,
        outcome.measured_ns / MS
    )
}
