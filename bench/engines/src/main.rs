//! Kvant's engine beside others, in process, and figures of it alone.
//!
//! `compare` is a parent that starts a child for each run. [`workloads`] has the operations,
//! [`engines`] the stores that they run on, and [`usage`] measures what they cost. [`results`] has
//! medians and ratios, and [`goals`] the verdicts on them. [`alone`] has the other commands. See
//! `bench/README.md`.

mod alone;
mod child;
mod compare;
mod data;
mod engine;
mod engines;
mod goals;
mod latency;
mod memory_group;
mod results;
mod settings;
mod table;
mod timer;
mod usage;
mod workloads;

use std::process::ExitCode;

/// An error that ends a benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
usage: engines-bench compare [OPTION]...
  --engines A,B     kvant, rocksdb, leveldb, fjall, lmdb, redb (all)
  --workloads A,B   see bench/README.md (all)
  --rounds N        runs of each workload on each engine (5)
  --records N       of 16 + 100 bytes; there are fewer of the larger ones (2500000)
  --rate N          operations a second of each workload, instead of as many as the engine takes
  --cache MIB       block cache of the peers; Kvant's budget is half more (256)
  --seed N          of all that is random (1)
  --retries N       how often a disturbed run is repeated (1)
  --memory-group D  for read4x: an empty memory control group, which it limits, page cache included
  --data-dir DIR    where databases lie meanwhile (the system's directory for such)
  --out FILE        results as JSON, and as Markdown beside it (target/engines.json)
  --from A,B        show the results of these files instead
  --check           fail if a goal is missed
usage: engines-bench COMMAND [--scale X] [--seed N] [--data-dir DIR] [--kvant PATH]
  memory      peak RSS of `kvant serve` while loading, reading and streaming more data than memory
  read-cost   data blocks fetched per present and per absent key
  overwrite   space amplification after overwriting every key several times
  recovery    time to recover a full log after kill -9
  --scale X   multiplies the amount of data (1); targets hold for 1
  --kvant     the server's binary (target/release/kvant), for memory and recovery";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Processes that this program starts.
        [child::COMMAND, job] => report(child::run(job)),
        [alone::recovery::FILL_COMMAND, dir, memory_bytes, value_bytes] => {
            report(alone::recovery::fill(dir, memory_bytes, value_bytes))
        }
        ["compare", ..] => match settings::parse(&arguments[1..]) {
            Ok(settings) => match compare::run(&settings) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::FAILURE,
                Err(failure) => report(Err(failure)),
            },
            Err(problem) => misused(&problem),
        },
        _ => match alone::parse(&arguments) {
            Ok((command, settings)) => report(command(&settings)),
            Err(problem) => misused(&problem),
        },
    }
}

fn misused(problem: &str) -> ExitCode {
    eprintln!("{problem}\n{USAGE}");
    ExitCode::from(2)
}

fn report(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("failed: {failure}");
            ExitCode::FAILURE
        }
    }
}
