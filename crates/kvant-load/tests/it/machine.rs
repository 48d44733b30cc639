//! What a run says of the machine that it ran on, and of how much of its latencies is the server's.

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

/// A process that uses a CPU whenever it gets one.
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

/// What the neighbours used in about the same time is the least that all others did, in all and by
/// second.
#[test]
fn processes_beside_a_run_show_up_in_it() {
    let server = Server::start(Behaviour::After(Duration::from_millis(1)));
    let mut load = Setup::new(server.url()).start().unwrap();
    load.watch_machine(ProcFs::system());
    let neighbours = [Neighbour::start(), Neighbour::start()];
    let used = || neighbours.iter().map(Neighbour::cpu_ns).sum::<u64>();
    let mut run_beside = || {
        let before_ns = used();
        let outcome = run(&mut load, 100.0, Duration::from_secs(2));
        (outcome, (used() - before_ns) as f64)
    };
    // On a machine with much else to do they may get no CPU in a run.
    let (mut outcome, mut used_ns) = run_beside();
    for _ in 0..4 {
        if used_ns == 0.0 {
            (outcome, used_ns) = run_beside();
        }
    }
    load.stop();
    let whole = outcome.machine.expect("Linux tells");
    let others_ns = |part: f64, time_ns: u64| part * f64::from(whole.cpu_count) * time_ns as f64;
    let in_all_ns = others_ns(whole.others_part, whole.time_ns);
    assert!(used_ns > 0.0 && in_all_ns > 0.7 * used_ns, "{used_ns} ns, {whole:?}");
    let seconds = outcome.seconds.iter().filter_map(|second| second.machine);
    let by_second_ns: f64 =
        seconds.map(|second| others_ns(second.others_part, second.time_ns)).sum();
    assert!(by_second_ns > 0.5 * used_ns, "{used_ns} ns, {:?}", outcome.seconds);
    // The server is in this process, and so in its share.
    assert_eq!((whole.server_part, whole.others_include_server), (None, false));
}

#[test]
fn nobody_looks_at_the_machine_unless_asked() {
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

/// A server of 20 ms, and a generator that stands still for 10 ms before every fiftieth request: of
/// 200 a second, a few are late.
#[test]
fn a_generator_that_is_late_now_and_then_leaves_p50_to_the_server() {
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

/// 2 ms in each call, of which one in 64 is timed: half a second of waiting, and a few milliseconds
/// of CPU time.
#[test]
fn a_source_that_waits_takes_no_cpu_time() {
    let outcome =
        run_sleepy(instant(), &phase(Rate::Constant(250.0), SECOND), 1, Duration::from_millis(2));
    let total = &outcome.total;
    assert!(total.source_ns <= total.cpu_ns, "{}", text(&outcome));
    assert!(total.source_ns < 200 * MS, "{} ns, {}", total.source_ns, text(&outcome));
}

#[test]
fn a_server_that_says_nothing_is_not_valid() {
    let server = Server::start(Behaviour::Silent);
    let outcome = Setup::new(server.url())
        .timeout(Duration::from_millis(100))
        .run(100.0, Duration::from_millis(400));
    let verdict = verdict::judge(&outcome);
    assert_eq!((verdict.bound, verdict.is_valid), (Bound::Server, false), "{verdict:?}");
    assert!(verdict.headline.starts_with("none of "), "{verdict:?}");
}
