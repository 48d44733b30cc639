//! Figures of Kvant's engine alone that depend little on the machine's speed: memory, read cost,
//! space, recovery.
//!
//! Each command prints plain lines `NAME VALUE UNIT TARGET`, tab-separated, with `-` where there is
//! no target. It fails when the database loses or invents data, never because a target is missed.

pub(crate) mod engine;
mod figures;
mod http;
mod memory;
mod overwrite;
mod read_cost;
mod records;
pub(crate) mod recovery;
pub(crate) mod scratch;
mod server;

use crate::Failure;
use std::path::PathBuf;

/// Arguments of every command.
pub(crate) struct Settings {
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

pub(crate) type Command = fn(&Settings) -> Result<(), Failure>;

pub(crate) fn parse(arguments: &[String]) -> Result<(Command, Settings), String> {
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
