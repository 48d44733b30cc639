//! `cargo xtask bench NAME [ARG]...`: starts a benchmark of `bench/`. What each measures, it says
//! itself (`bench/README.md`).

use crate::{Verdict, cargo};
use std::process::Command;

/// A benchmark: the command, to which the arguments are appended, runs in the root.
struct Bench {
    name: &'static str,
    command: &'static [&'static str],
    about: &'static str,
    /// Whether it needs the release binary of `kvant`, which is then built first.
    needs_kvant: bool,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "servers",
        command: &["python3", "bench/servers/run.py"],
        about: "CPU per request against a raw epoll loop, nginx, Redis, and one-nio with LevelDB",
        needs_kvant: true,
    },
    Bench {
        name: "limits",
        command: &["python3", "bench/servers/limits.py"],
        about: "breaking points against one-nio with LevelDB, 1,024 connections, overload, idle connections: a command each",
        needs_kvant: true,
    },
    Bench {
        name: "engine",
        command: &["cargo", "run", "--release", "--manifest-path", "bench/engine/Cargo.toml", "--"],
        about: "memory, read cost, space amplification and recovery: a command each",
        needs_kvant: true,
    },
    Bench {
        name: "load",
        command: &["python3", "bench/load/run.py"],
        about: "the load generator: CPU per request against wrk, its own lateness, single-connection latency of Kvant",
        needs_kvant: true,
    },
];

/// Runs one benchmark, or lists them all.
pub(crate) fn run(arguments: &[String]) -> Verdict {
    let Some((name, rest)) = arguments.split_first() else {
        for bench in BENCHES {
            println!("{:10} {}", bench.name, bench.about);
        }
        return Ok(true);
    };
    let bench = BENCHES
        .iter()
        .find(|bench| bench.name == name)
        .ok_or_else(|| format!("there is no benchmark {name:?}"))?;
    if bench.needs_kvant {
        cargo::run(cargo::cargo().args(["build", "--release", "--bin", "kvant"]))?;
    }
    cargo::run(
        Command::new(bench.command[0])
            .args(&bench.command[1..])
            .args(rest)
            .current_dir(cargo::root()),
    )?;
    Ok(true)
}
