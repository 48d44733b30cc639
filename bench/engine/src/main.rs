//! Figures of the engine that depend little on the machine's speed: memory, read cost, space,
//! recovery.
//!
//! Each command prints plain lines `NAME VALUE UNIT TARGET`, tab-separated, with `-` where there is
//! no target. It fails when the database loses or invents data, never because a target is missed.
//! See `bench/README.md`.

mod engine;
mod figures;
mod http;
mod memory;
mod overwrite;
mod read_cost;
mod records;
mod recovery;
mod scratch;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;

/// An error that ends a benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
usage: engine-bench COMMAND [--scale X] [--seed N] [--data-dir DIR] [--kvant PATH]
  memory      peak RSS of `kvant serve` while loading, reading and streaming more data than memory
  read-cost   data blocks fetched per present and per absent key
  overwrite   space amplification after overwriting every key several times
  recovery    time to recover a full log after kill -9
  --scale X   multiplies the amount of data (1); targets hold for 1
  --seed N    of all that is random (1)
  --data-dir  where the database lies while a command runs (the system's directory for such)
  --kvant     the server's binary (target/release/kvant), for memory and recovery";

/// Arguments of every command.
struct Settings {
    scale: f64,
    seed: u64,
    data_dir: PathBuf,
    kvant: PathBuf,
}

impl Settings {
    /// A count or size of the full benchmark, scaled; at least 1.
    fn scaled(&self, full: u64) -> u64 {
        ((full as f64 * self.scale) as u64).max(1)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The process of `recovery` that is killed.
    if let [command, dir, memory_bytes, value_bytes] = &arguments[..]
        && command == recovery::FILL_COMMAND
    {
        return report(recovery::fill(dir, memory_bytes, value_bytes));
    }
    match parse(&arguments) {
        Ok((command, settings)) => report(command(&settings)),
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            ExitCode::from(2)
        }
    }
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

type Command = fn(&Settings) -> Result<(), Failure>;

fn parse(arguments: &[String]) -> Result<(Command, Settings), String> {
    let (name, options) = arguments.split_first().ok_or("no command")?;
    let command: Command = match name.as_str() {
        "memory" => memory::run,
        "read-cost" => read_cost::run,
        "overwrite" => overwrite::run,
        "recovery" => recovery::run,
        _ => return Err(format!("no command {name:?}")),
    };
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut settings = Settings {
        scale: 1.0,
        seed: 1,
        data_dir: std::env::temp_dir(),
        kvant: root.join("target/release/kvant"),
    };
    for pair in options.chunks(2) {
        let [option, value] = pair else {
            return Err(format!("{} needs a value", pair[0]));
        };
        let bad = |what: &str| format!("{option} {value}: not {what}");
        match option.as_str() {
            "--scale" => settings.scale = value.parse().map_err(|_| bad("a number"))?,
            "--seed" => settings.seed = value.parse().map_err(|_| bad("a whole number"))?,
            "--data-dir" => settings.data_dir = value.into(),
            "--kvant" => settings.kvant = value.into(),
            _ => return Err(format!("no option {option:?}")),
        }
    }
    Ok((command, settings))
}
