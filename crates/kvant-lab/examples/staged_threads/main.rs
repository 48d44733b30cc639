//! Predicts what faster stages would bring to a pipeline of two real threads, and makes them
//! faster.
//!
//! `staged_threads ROUNDS`
//!
//! One thread parses and looks up, the other one responds. Prints, for each stage and two parts of
//! its time, by how much the rate is predicted to grow, and by how much it grows. Medians of rounds
//! of 300 ms each; the rounds of all configurations are interleaved. Needs two CPUs.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

use kvant_base::dilation::{self, STAGE_COUNT, UNIT};
use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::wait::WaitKind;
use kvant_env::clock::system_ns;
use std::collections::BTreeMap;
use std::io;

const ROUND_NS: u64 = 300_000_000;
/// Requests between both threads.
const QUEUE_MAX: u64 = 4;
const STAGES: [Stage; 3] = [Stage::Parse, Stage::Table, Stage::Respond];
/// What they take, in nanoseconds: the second thread is the bottleneck, or the first one, but not
/// by much.
const SERVERS_NS: [[u64; 3]; 2] = [[60_000, 30_000, 100_000], [70_000, 50_000, 90_000]];
const PERCENTS: [u32; 2] = [25, 50];

/// What is measured: the server as it is, or with a stage that is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Configuration {
    AsItIs,
    Predicted(usize, u32),
    Real(usize, u32),
}

fn main() -> io::Result<()> {
    let rounds = std::env::args().nth(1).unwrap_or("9".to_owned());
    let rounds: u32 = rounds.parse().map_err(io::Error::other)?;
    let mut configurations = vec![Configuration::AsItIs];
    for stage in 0..STAGES.len() {
        for percent in PERCENTS {
            configurations.push(Configuration::Predicted(stage, percent));
            configurations.push(Configuration::Real(stage, percent));
        }
    }
    for costs_ns in SERVERS_NS {
        let mut rates: BTreeMap<Configuration, Vec<f64>> = BTreeMap::new();
        for _ in 0..rounds {
            for configuration in &configurations {
                rates.entry(*configuration).or_default().push(rate(costs_ns, *configuration));
            }
        }
        print(&rates);
    }
    Ok(())
}

fn print(rates: &BTreeMap<Configuration, Vec<f64>>) {
    let median = |configuration| {
        let mut rates = rates[&configuration].clone();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let as_it_is = median(Configuration::AsItIs);
    println!("as it is: {as_it_is:.0}/s");
    for (index, stage) in STAGES.into_iter().enumerate() {
        for percent in PERCENTS {
            let predicted = median(Configuration::Predicted(index, percent)) / as_it_is;
            let real = median(Configuration::Real(index, percent)) / as_it_is;
            let off = 100.0 * (predicted / real - 1.0);
            let name = stage.name();
            println!("{name} -{percent} %: x{predicted:.3}, really x{real:.3}, off {off:+.1} %");
        }
    }
}

/// Requests per second of a round. Without a change, stages are timed as well.
fn rate(mut costs_ns: [u64; 3], configuration: Configuration) -> f64 {
    let (mut added, mut factor) = ([0; STAGE_COUNT], 1.0);
    match configuration {
        Configuration::AsItIs => {}
        Configuration::Predicted(index, percent) => {
            let parts = UNIT * percent / (100 - percent);
            added = [parts; STAGE_COUNT];
            added[STAGES[index] as usize] = 0;
            factor += f64::from(parts) / f64::from(UNIT);
        }
        Configuration::Real(index, percent) => {
            costs_ns[index] = costs_ns[index] * u64::from(100 - percent) / 100;
        }
    }
    let experiment = dilation::begin(added, 2 * ROUND_NS, system_ns).expect("none runs");
    let rate = pipeline(costs_ns) * factor;
    dilation::end(experiment);
    rate
}

/// Requests that have passed the queue and those that have been done, between both threads.
struct Shared {
    queue: NamedMutex<(u64, u64)>,
    changed: NamedCondvar,
}

fn pipeline(costs_ns: [u64; 3]) -> f64 {
    let shared = Shared {
        queue: NamedMutex::new("queue", (0, 0)),
        changed: NamedCondvar::new(WaitKind::Idle, "queue"),
    };
    let [parse_ns, table_ns, respond_ns] = costs_ns;
    let start_ns = system_ns();
    let end_ns = start_ns + ROUND_NS;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while system_ns() < end_ns {
                work(Stage::Parse, parse_ns);
                work(Stage::Table, table_ns);
                let mut queue = shared.queue.lock();
                while queue.0 - queue.1 >= QUEUE_MAX {
                    queue = shared.changed.wait(queue);
                }
                queue.0 += 1;
                shared.changed.notify_all();
            }
            shared.queue.lock().0 = u64::MAX;
            shared.changed.notify_all();
        });
        let mut done = 0;
        loop {
            let mut queue = shared.queue.lock();
            while queue.0 == done {
                queue = shared.changed.wait(queue);
            }
            if queue.0 == u64::MAX {
                break;
            }
            drop(queue);
            work(Stage::Respond, respond_ns);
            done += 1;
            shared.queue.lock().1 = done;
            shared.changed.notify_all();
        }
        done as f64 * 1e9 / (system_ns() - start_ns) as f64
    })
}

fn work(stage: Stage, ns: u64) {
    let _tag = tag::enter_at(Activity::Get, stage);
    let until_ns = system_ns() + ns;
    while system_ns() < until_ns {
        std::hint::spin_loop();
    }
}
