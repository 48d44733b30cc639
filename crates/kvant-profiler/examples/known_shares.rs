//! Prints the shares of CPU time that each engine measures of a known program, at several loads,
//! beside the true shares.
//!
//! Arguments, all numbers: seconds per run, samples per second of CPU time, competing processes (0
//! or 1), whether waits are announced (0 or 1), the load in per cent (0 for 5, 30 and 90).
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

#[path = "../tests/support/mod.rs"]
mod support;

use kvant_profiler::collect::Engine;
use std::path::Path;
use std::time::Duration;
use support::known::{self, Neighbours, PARTS, Plan};

fn main() {
    let line = kvant_env::host::read_text(Path::new("/proc/self/cmdline")).expect("Linux");
    let mut arguments = line.trim_end_matches('\0').split('\0').skip(1);
    let mut number =
        |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (seconds, rate_hz, with_neighbours, is_wait_said) =
        (number(5), number(999), number(0), number(1));
    let loads = match number(0) {
        0 => vec![5, 30, 90],
        load => vec![load],
    };
    let _neighbours = (with_neighbours != 0).then(Neighbours::begin);
    println!("| load | engine | {} | all | samples | waits |", PARTS.join(" | "));
    println!("|---|---|{}---|---|---|", "---|".repeat(PARTS.len()));
    for load in loads {
        // About the same number of samples for each load.
        let worker_count = (60 / load).clamp(1, 8);
        for engine in [Engine::Timer, Engine::Perf] {
            let outcome = known::run(Plan {
                engine,
                rate_hz: rate_hz as u32,
                load,
                duration: Duration::from_secs(seconds),
                worker_count,
                is_wait_said: is_wait_said != 0,
                seed: 7,
            });
            let cells = outcome.truth.iter().zip(outcome.seen);
            let cells: Vec<String> =
                cells.map(|(truth, seen)| format!("{truth:.1}: {seen:.1}")).collect();
            println!(
                "| {:.0} % | {engine:?} | {} | {:.1} | {} | {} |",
                outcome.load,
                cells.join(" | "),
                outcome.seen_of_all,
                outcome.sample_count,
                outcome.wait_count
            );
        }
    }
}
