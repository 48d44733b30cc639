//! `cargo xtask bench engines COMMAND [ARG]...`: measures the engine by `bench/engines`, beside
//! others and alone. `bench cluster` measures the engine `cassandra`. Everything else that is
//! measured is a plan of the lab: `kvant lab list`.

use crate::bench_cluster;
use crate::process::{self, Verdict};
use clap::{Arg, ArgMatches, Command};
use std::path::PathBuf;

/// The Java package of RocksDB, whose shared library exports the C interface.
const ROCKSDB: &str = "org.rocksdb:rocksdbjni:10.4.2:jar:linux64";
const ROCKSDB_LIBRARY: &str = "librocksdbjni-linux64.so";
const MAVEN_UNPACK: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack";

pub(crate) fn command() -> Command {
    let arguments = Arg::new("ARG").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    let engines = Command::new("engines")
        .about("`compare` with other engines; memory, read-cost, overwrite, recovery of Kvant's")
        .disable_help_flag(true)
        .arg(arguments);
    Command::new("bench")
        .about("Measure engines of the release build (servers: `kvant lab run bench-cpu`)")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(engines)
        .subcommand(bench_cluster::command())
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    if name == "cluster" {
        return bench_cluster::run(matches);
    }
    let mut arguments = matches.get_many::<String>("ARG").into_iter().flatten().peekable();
    let mut bench = process::cargo();
    bench.args(["run", "--release", "--manifest-path", "bench/engines/Cargo.toml"]);
    bench.arg("--target-dir").arg(process::target_dir()?.join("bench-engines")).arg("--");
    // LevelDB is compiled with the processor's CRC instruction.
    let headers = headers();
    bench.env("CXXFLAGS", format!("-DHAVE_CRC32C=1 -msse4.2 -I{}", headers.display()));
    if arguments.peek().is_some_and(|name| *name == "compare") {
        bench.env("KVANT_BENCH_ROCKSDB", rocksdb()?);
    } else {
        process::run(process::cargo().args(["build", "--release", "--bin", "kvant"]))?;
    }
    process::run(bench.args(arguments))?;
    Ok(true)
}

/// RocksDB's shared library, fetched on first use.
fn rocksdb() -> Result<PathBuf, String> {
    let dir = process::target_dir()?.join("rocksdb");
    let library = dir.join(ROCKSDB_LIBRARY);
    if !library.exists() {
        process::run(
            std::process::Command::new("mvn")
                // It leaves a directory where it runs.
                .current_dir(process::target_dir()?)
                .args(["-q", "-B", MAVEN_UNPACK, "-Dmdep.overWriteReleases=true"])
                .arg(format!("-Dartifact={ROCKSDB}"))
                .arg(format!("-Dmdep.unpack.includes={ROCKSDB_LIBRARY}"))
                .arg(format!("-DoutputDirectory={}", dir.display())),
        )?;
    }
    // RocksDB has the processor's CRC instruction, too.
    process::run(
        std::process::Command::new("c++")
            .args(["-O3", "-msse4.2", "-shared", "-fPIC", "-o"])
            .arg(dir.join("librocksdb_crc32c.so"))
            .arg(headers().join("rocksdb_crc32c.cc")),
    )?;
    Ok(library)
}

fn headers() -> PathBuf {
    process::root().join("bench/engines/include")
}
