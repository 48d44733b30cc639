//! `kvant db`: commands on a database that is not being served.
//!
//! Results go to standard output, errors to standard error. Each command locks the data directory
//! while it runs.

use crate::exit::{EXIT_FAILED, EXIT_LOST, print, stdout_error};
use crate::log::StderrLog;
use crate::settings::Settings;
use clap::ArgMatches;
use kvant_base::log::Log;
use kvant_base::{Error, ErrorKind, Events, MemoryBudget, Result, size};
use kvant_engine::tools::{self, DumpTarget};
use kvant_engine::{Db, Resources};
use kvant_env::Env;
use std::error::Error as _;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs a command that needs no settings; returns the exit code.
pub(crate) fn run(name: &str, args: &ArgMatches) -> Result<u8> {
    let env = Env::posix();
    let dir = path(args, "DIR");
    match name {
        "verify" => verify(&env, dir),
        "repair" => repair(&env, dir),
        "dump" => dump(&env, dir, dump_target(args)).map(|()| 0),
        "stats" => stats(&env, dir).map(|()| 0),
        "restore" => restore(&env, path(args, "CHECKPOINT"), dir).map(|()| 0),
        other => unreachable!("`{other}` is not in the definition of the command line"),
    }
}

pub(crate) fn run_open(name: &str, args: &ArgMatches, settings: &Settings) -> Result<()> {
    let env = Env::posix();
    let dir = path(args, "DIR");
    require_database(&env, dir)?;
    let log: Arc<dyn Log> = Arc::new(StderrLog::new(settings.log_format, Arc::clone(&env.clock)));
    let resources = Resources {
        memory: MemoryBudget::new(settings.memory_bytes),
        log,
        events: Events::new(1),
        progress: Arc::default(),
    };
    let db = Db::open(env, dir, settings.engine_options(), resources)?;
    let done = match name {
        "compact" => db.compact(),
        "checkpoint" => db.checkpoint(path(args, "TARGET")),
        other => unreachable!("`{other}` is not in the definition of the command line"),
    };
    // The first error is the one to report.
    let closed = db.close();
    done.and(closed)
}

/// What to do about an error of `command`, if known.
pub(crate) fn advice(command: &str, error: &Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::Locked => Some("stop the process that owns the directory first"),
        // Places that differ, or damage of whatever engine.
        ErrorKind::Corruption if command == "copy" => None,
        ErrorKind::Corruption => Some(
            "see all damage with `kvant db verify`, then `kvant db repair`, or restore a checkpoint",
        ),
        ErrorKind::Unsupported => {
            Some("use the version of Kvant that wrote these files, or a later one")
        }
        _ => None,
    }
}

/// Fails if there is no database: opening would create one in a misspelt directory.
pub(super) fn require_database(env: &Env, dir: &Path) -> Result<()> {
    let entries = env.fs.list(dir).map_err(|error| Error::io("list", dir, error))?;
    match entries.iter().any(|entry| entry.name.starts_with("MANIFEST-")) {
        true => Ok(()),
        false => Err(Error::invalid("there is no database").with_file(dir)),
    }
}

fn verify(env: &Env, dir: &Path) -> Result<u8> {
    let mut printed = Ok(());
    let report = tools::verify(env, dir, &mut |line| {
        if printed.is_ok() {
            printed = print(format!("{line}\n"));
        }
    })?;
    printed?;
    let mut text = format!(
        "{} tables with {} entries in {}, {} log records, {} bytes torn off by a crash, {} files to remove\n",
        report.table_count,
        report.entry_count,
        size::format(report.table_bytes),
        report.wal_record_count,
        report.wal_torn_bytes,
        report.orphan_count
    );
    for problem in &report.problems {
        text += &format!("damaged: {problem}\n");
    }
    let exit_code = if report.problems.is_empty() {
        text += "whole\n";
        0
    } else {
        EXIT_FAILED
    };
    print(text).map(|()| exit_code)
}

fn repair(env: &Env, dir: &Path) -> Result<u8> {
    let report = tools::repair(env, dir)?;
    let lines = report.problems.iter().map(|problem| format!("damaged: {problem}\n"));
    let moved = report.moved_files.iter().map(|file| format!("moved: {}\n", file.display()));
    let lost = report.losses.iter().map(|loss| format!("lost: {loss}\n"));
    let mut text: String = lines.chain(moved).chain(lost).collect();
    text += &format!(
        "{} tables whole, {} damaged with {} entries saved and {} blocks lost; {} records of damaged logs saved, at least {} \
         operations lost\n",
        report.whole_table_count,
        report.damaged_table_count,
        report.saved_entry_count,
        report.lost_block_count,
        report.saved_record_count,
        report.lost_op_count,
    );
    let exit_code = if report.losses.is_empty() {
        text += "nothing is lost\n";
        0
    } else {
        let lost = dir.join("lost");
        text += &format!("not all was saved; what could not be read is in {}\n", lost.display());
        EXIT_LOST
    };
    print(text).map(|()| exit_code)
}

fn dump(env: &Env, dir: &Path, target: DumpTarget) -> Result<()> {
    if target == DumpTarget::Records {
        require_database(env, dir)?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let dumped = tools::dump(env, dir, target, &mut out);
    match dumped.and_then(|()| out.flush().map_err(stdout_error)) {
        // A reader that closes the pipe early (`kvant db dump DIR | head`) is no failure.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        result => result,
    }
}

fn stats(env: &Env, dir: &Path) -> Result<()> {
    require_database(env, dir)?;
    let stats = tools::stats(env, dir)?;
    let text = serde_json::to_string_pretty(&stats).expect("statistics have string keys");
    print(text + "\n")
}

fn restore(env: &Env, from: &Path, to: &Path) -> Result<()> {
    let report = tools::restore(env, from, to)?;
    let (bytes, dir) = (size::format(report.bytes), to.display());
    print(format!("{} files, {bytes}, in {dir}\n", report.file_count))
}

fn dump_target(args: &ArgMatches) -> DumpTarget {
    let number = |name: &str| args.get_one::<u64>(name).copied();
    match (args.get_flag("manifest"), number("wal"), number("table")) {
        (true, ..) => DumpTarget::Manifest,
        (_, Some(num), _) => DumpTarget::Wal(num),
        (_, _, Some(num)) => DumpTarget::Table(num),
        _ => DumpTarget::Records,
    }
}

fn path<'a>(args: &'a ArgMatches, name: &str) -> &'a Path {
    args.get_one::<PathBuf>(name).expect("clap requires the argument")
}

fn is_broken_pipe(error: &Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}
