//! `kvant db`: what can be done with a database that nobody serves.
//!
//! Results go to standard output, what is wrong to standard error. Each command owns the data
//! directory while it runs.

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

/// Whether what was looked at is as it should be, or can be made so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Whole,
    Damaged,
    /// Repaired, but for what is lost.
    Lost,
}

/// Runs a command that needs no settings.
pub(crate) fn run(name: &str, args: &ArgMatches) -> Result<Verdict> {
    let env = Env::posix();
    let dir = path(args, "DIR");
    let mut out = BufWriter::new(io::stdout().lock());
    let verdict = match name {
        "verify" => verify(&env, dir, &mut out),
        "repair" => repair(&env, dir, &mut out),
        "dump" => dump(&env, dir, dump_target(args), &mut out).map(whole),
        "stats" => stats(&env, dir, &mut out).map(whole),
        "restore" => restore(&env, path(args, "CHECKPOINT"), dir, &mut out).map(whole),
        other => unreachable!("`{other}` is not in the definition of the command line"),
    };
    let flushed = out.flush().map_err(to_stdout);
    match verdict.and_then(|verdict| flushed.map(|()| verdict)) {
        // A reader that has seen enough (`kvant db dump DIR | head`) is no failure.
        Err(error) if is_broken_pipe(&error) => Ok(Verdict::Whole),
        result => result,
    }
}

/// Runs a command that opens the database to work on it.
pub(crate) fn run_open(name: &str, args: &ArgMatches, settings: &Settings) -> Result<()> {
    let env = Env::posix();
    let dir = path(args, "DIR");
    existing(&env, dir)?;
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
    // What failed first is what the operator needs to know.
    let closed = db.close();
    done.and(closed)
}

/// What to do about an error, where there is something to say.
pub(crate) fn advice(error: &Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::Locked => Some("stop the process that owns the directory first"),
        ErrorKind::Corruption => Some(
            "see all damage with `kvant db verify`, then `kvant db repair`, or restore a checkpoint",
        ),
        ErrorKind::Unsupported => {
            Some("use the version of Kvant that wrote these files, or a later one")
        }
        _ => None,
    }
}

/// Opening creates what is missing: a tool for a database that exists must not make one where a
/// name was misspelt.
fn existing(env: &Env, dir: &Path) -> Result<()> {
    let entries = env.fs.list(dir).map_err(|error| Error::io("list", dir, error))?;
    match entries.iter().any(|entry| entry.name.starts_with("MANIFEST-")) {
        true => Ok(()),
        false => Err(Error::invalid("there is no database").with_file(dir)),
    }
}

fn verify(env: &Env, dir: &Path, out: &mut dyn Write) -> Result<Verdict> {
    let mut told = Ok(());
    let report = tools::verify(env, dir, &mut |line| {
        if told.is_ok() {
            told = writeln!(out, "{line}");
        }
    })?;
    told.map_err(to_stdout)?;
    writeln!(
        out,
        "{} tables with {} entries in {}, {} log records, {} bytes torn off by a crash, {} files to remove",
        report.table_count,
        report.entry_count,
        size::format(report.table_bytes),
        report.wal_record_count,
        report.wal_torn_bytes,
        report.orphan_count,
    )
    .map_err(to_stdout)?;
    for problem in &report.problems {
        writeln!(out, "damaged: {problem}").map_err(to_stdout)?;
    }
    if report.problems.is_empty() {
        writeln!(out, "whole").map_err(to_stdout)?;
        return Ok(Verdict::Whole);
    }
    Ok(Verdict::Damaged)
}

fn repair(env: &Env, dir: &Path, out: &mut dyn Write) -> Result<Verdict> {
    let report = tools::repair(env, dir)?;
    let lines = report.problems.iter().map(|problem| format!("damaged: {problem}"));
    let moved = report.moved_files.iter().map(|file| format!("moved: {}", file.display()));
    let lost = report.losses.iter().map(|loss| format!("lost: {loss}"));
    for line in lines.chain(moved).chain(lost) {
        writeln!(out, "{line}").map_err(to_stdout)?;
    }
    writeln!(
        out,
        "{} tables whole, {} damaged with {} entries saved and {} blocks lost; {} records of damaged logs saved, at least {} \
         operations lost",
        report.whole_table_count,
        report.damaged_table_count,
        report.saved_entry_count,
        report.lost_block_count,
        report.saved_record_count,
        report.lost_op_count,
    )
    .map_err(to_stdout)?;
    if report.losses.is_empty() {
        writeln!(out, "nothing is lost").map_err(to_stdout)?;
        return Ok(Verdict::Whole);
    }
    writeln!(out, "not all was saved; what could not be read is in {}", dir.join("lost").display())
        .map_err(to_stdout)?;
    Ok(Verdict::Lost)
}

fn dump(env: &Env, dir: &Path, target: DumpTarget, out: &mut dyn Write) -> Result<()> {
    if target == DumpTarget::Records {
        existing(env, dir)?;
    }
    tools::dump(env, dir, target, out)
}

fn stats(env: &Env, dir: &Path, out: &mut dyn Write) -> Result<()> {
    existing(env, dir)?;
    let stats = tools::stats(env, dir)?;
    serde_json::to_writer_pretty(&mut *out, &stats).map_err(|error| to_stdout(error.into()))?;
    writeln!(out).map_err(to_stdout)
}

fn restore(env: &Env, from: &Path, to: &Path, out: &mut dyn Write) -> Result<()> {
    let report = tools::restore(env, from, to)?;
    writeln!(
        out,
        "{} files, {}, in {}",
        report.file_count,
        size::format(report.bytes),
        to.display()
    )
    .map_err(to_stdout)
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

fn whole((): ()) -> Verdict {
    Verdict::Whole
}

fn to_stdout(error: io::Error) -> Error {
    Error::io("write to", Path::new("standard output"), error)
}

fn is_broken_pipe(error: &Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}
