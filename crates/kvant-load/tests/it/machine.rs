//! The machine's CPU use in a result, and the server's part of the latencies.

use crate::core::{GET, SECOND, config, instant, phase};
use crate::harness::{MS, Setup, ensure, experiment, run, text};
use crate::server::{Behaviour, Server};
use kvant_base::Result;
use kvant_env::Env;
use kvant_env::host::procfs::ProcFs;
use kvant_load::verdict::{self, Bound};
use kvant_load::{Batch, Expected, Load, OpNames, Outcome, Phase, Rate, RequestSource};
use std::process::{Child, Command};
use std::time::Duration;

/// A process that uses all the CPU time it gets.
struct Neighbour(Child);

impl Neighbour {
    fn start() -> Neighbour {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Neighbour(child.expect("there is a shell"))
    }

    fn cpu_ns(&self) -> u64 {
        let pid = self.0.id().to_string();
        ProcFs::system().process_cpu_ns(&pid).expect("it runs")
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }
}

/// The CPU time of the neighbours is a lower bound of that of all other processes, in total and by
/// second.
#[test]
fn other_processes_appear_in_the_result() {
    let server = Server::start(Behaviour::After(Duration::from_millis(1)));
    let mut load = Setup::new(server.url()).start().unwrap();
    load.watch_machine(ProcFs::system(), &[]);
    let neighbours = [Neighbour::start(), Neighbour::start()];
    let used = || neighbours.iter().map(Neighbour::cpu_ns).sum::<u64>();
    let mut run_beside = || {
        let before_ns = used();
        let outcome = run(&mut load, 100.0, Duration::from_secs(2));
        (outcome, (used() - before_ns) as f64)
    };
    // On a busy machine they may get no CPU.
    let (mut outcome, mut used_ns) = run_beside();
    for _ in 0..4 {
        if used_ns == 0.0 {
            (outcome, used_ns) = run_beside();
        }
    }
    load.stop();
    let whole = outcome.machine.expect("Linux reports it");
    let others_ns = |part: f64, time_ns: u64| part * f64::from(whole.cpu_count) * time_ns as f64;
    let in_all_ns = others_ns(whole.others_part, whole.time_ns);
    assert!(used_ns > 0.0 && in_all_ns > 0.7 * used_ns, "{used_ns} ns, {whole:?}");
    let seconds = outcome.seconds.iter().filter_map(|second| second.machine);
    let by_second_ns: f64 =
        seconds.map(|second| others_ns(second.others_part, second.time_ns)).sum();
    assert!(by_second_ns > 0.5 * used_ns, "{used_ns} ns, {:?}", outcome.seconds);
    // The server is in this process.
    assert_eq!((whole.server_part, whole.others_include_server), (None, false));
}

#[test]
fn the_machine_is_sampled_only_on_request() {
    let server = Server::start(Behaviour::After(Duration::ZERO));
    let outcome = Setup::new(server.url()).run(100.0, Duration::from_millis(300));
    assert_eq!(outcome.machine, None);
    assert_eq!(outcome.seconds[0].machine, None);
}

/// Sleeps before some of its requests.
struct Sleepy {
    expected: [Expected; 1],
    calls: u64,
    every: u64,
    sleep: Duration,
}

impl RequestSource for Sleepy {
    fn next(&mut self, _: usize) -> Result<Batch<'_>> {
        self.calls += 1;
        if self.calls.is_multiple_of(self.every) {
            std::thread::sleep(self.sleep);
        }
        Ok(Batch { bytes: GET, requests: &self.expected })
    }
}

fn sleepy(every: u64, sleep: Duration) -> (OpNames, Vec<Box<dyn RequestSource>>) {
    let ops = OpNames::default();
    let source = Sleepy {
        expected: [Expected { op: ops.intern("op"), is_head: false }],
        calls: 0,
        every,
        sleep,
    };
    (ops, vec![Box::new(source)])
}

fn run_sleepy(
    address: std::net::SocketAddr,
    phase: &Phase,
    every: u64,
    sleep: Duration,
) -> Outcome {
    let (ops, sources) = sleepy(every, sleep);
    let mut load = Load::start(config(address, 1, 32), sources, ops, Env::posix()).unwrap();
    let outcome = load.run(phase, &mut |_| true).unwrap();
    load.stop();
    outcome
}

/// The generator stalls for 10 ms before every fiftieth of 200 requests a second.
#[test]
fn p50_of_a_generator_that_is_sometimes_late_is_the_servers() {
    experiment(|| {
        let server = Server::start(Behaviour::After(Duration::from_millis(20)));
        let phase = phase(Rate::Constant(200.0), SECOND);
        let outcome = run_sleepy(server.address(), &phase, 50, Duration::from_millis(10));
        let verdict = verdict::judge(&outcome);
        let lag_ns = outcome.total.send_lag.percentile_ns(99.0);
        ensure!(lag_ns > 3 * MS, "lag {lag_ns}, {}", text(&outcome));
        let [p50, _, p99, _] = verdict.shares[..] else { panic!("{verdict:?}") };
        ensure!(p50.is_server && p50.generator_ns < 2 * MS, "{verdict:?}");
        ensure!(!p99.is_server && p99.generator_ns > 3 * MS, "{verdict:?}");
        ensure!(verdict.label() == "NOT VALID for p99, generator-bound", "{verdict:?}");
        let blames_all = |sentence: &String| sentence.contains("generator's own");
        ensure!(!verdict.sentences.iter().any(blames_all), "{verdict:?}");
        Ok(())
    });
}

/// Each call waits 2 ms, and one in 64 is timed: half a second of waiting in total.
#[test]
fn a_source_that_waits_uses_no_cpu_time() {
    let outcome =
        run_sleepy(instant(), &phase(Rate::Constant(250.0), SECOND), 1, Duration::from_millis(2));
    let total = &outcome.total;
    assert!(total.source_ns <= total.cpu_ns, "{}", text(&outcome));
    assert!(total.source_ns < 200 * MS, "{} ns, {}", total.source_ns, text(&outcome));
}

#[test]
fn a_phase_without_responses_is_not_valid() {
    let server = Server::start(Behaviour::Silent);
    let outcome = Setup::new(server.url())
        .timeout(Duration::from_millis(100))
        .run(100.0, Duration::from_millis(400));
    let verdict = verdict::judge(&outcome);
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Server, false), "{verdict:?}");
    assert!(verdict.headline.starts_with("none of "), "{verdict:?}");
}
