//! A process that does one workload on one engine, so that memory and files are the engine's own,
//! or makes the data for others.
//!
//! The parent passes a [`Job`] as JSON in the argument; the child prints a [`Figures`], or nothing
//! for [`Step::Make`] and [`Step::MakeAndDie`], as one line of JSON.

use crate::Failure;
use crate::data;
use crate::engine::{Engine, Kind, Setup};
use crate::latency::Latency;
use crate::memory_group;
use crate::usage::{self, Memory, Usage};
use crate::workloads::{self, Bench, Start, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Gets of a run that waits for the disk: a minute at 16,000 a second.
const DISK_READS_MAX: u64 = 1_000_000;
/// The hidden command.
pub(crate) const COMMAND: &str = "child";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) step: Step,
    pub(crate) engine: Kind,
    /// Also names the shape of the records to make.
    pub(crate) workload: String,
    pub(crate) dir: PathBuf,
    /// Small records; other shapes have a share of them.
    pub(crate) records: u64,
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    /// Operations a second, when measured.
    pub(crate) rate: Option<u64>,
    /// The control group to measure in.
    pub(crate) memory_group: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Write all records in batches, check them, and close.
    Make,
    /// Write all records one by one and leave as a killed process would.
    MakeAndDie,
    Measure,
}

/// What one run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) op_count: u64,
    pub(crate) user_bytes: u64,
    /// During the workload.
    pub(crate) usage: Usage,
    /// From its start until background work was done.
    pub(crate) settled: Usage,
    pub(crate) latencies: BTreeMap<String, Latency>,
    pub(crate) disk_bytes: u64,
    pub(crate) memory: Memory,
    pub(crate) memory_bytes_set: u64,
    /// Of a killed process, if the engine has no log.
    pub(crate) lost_count: u64,
    pub(crate) stats: Value,
}

pub(crate) fn run(job: &str) -> Result<(), Failure> {
    let job: Job = serde_json::from_str(job)?;
    let workload = workloads::find(&job.workload).ok_or("an unknown workload")?;
    match job.step {
        Step::Make => make(&job, workload),
        Step::MakeAndDie => make_and_die(&job, workload),
        Step::Measure => {
            println!("{}", serde_json::to_string(&measure(&job, workload)?)?);
            Ok(())
        }
    }
}

/// Calls `work` with an open engine.
fn with_engine<T>(
    job: &Job,
    workload: &Workload,
    work: impl FnOnce(&Bench<'_>) -> Result<T, Failure>,
) -> Result<(T, Box<dyn Engine>), Failure> {
    let started = Instant::now();
    let engine = job.engine.open(&job.dir, &job.setup)?;
    let open_ns = started.elapsed().as_nanos() as u64;
    let values = workloads::values(workload.shape, 1);
    let count = workload.shape.count(job.records);
    let ops_max = if job.setup.reads_from_disk { DISK_READS_MAX } else { u64::MAX };
    let (seed, rate) = (job.seed, job.rate);
    let bench = Bench { engine: &*engine, values: &values, count, seed, ops_max, rate, open_ns };
    let result = work(&bench)?;
    Ok((result, engine))
}

fn make(job: &Job, workload: &Workload) -> Result<(), Failure> {
    let ((), engine) = with_engine(job, workload, |bench| {
        workloads::fill_in_batches(bench, bench.count)?;
        bench.engine.flush()?;
        bench.engine.settle()?;
        check(bench)
    })?;
    engine.close()
}

/// Compares every record with what was written.
fn check(bench: &Bench<'_>) -> Result<(), Failure> {
    let (mut number, mut wrong_count) = (0, 0);
    let count = bench.engine.scan(b"0", u64::MAX, &mut |key, value| {
        let is_right = key == data::key(number) && value == bench.values.get(number, 0);
        wrong_count += u64::from(!is_right);
        number += 1;
    })?;
    if (count, wrong_count) != (bench.count, 0) {
        let expected = bench.count;
        return Err(format!("{count} of {expected} records, {wrong_count} of them wrong").into());
    }
    Ok(())
}

fn make_and_die(job: &Job, workload: &Workload) -> Result<(), Failure> {
    let died = with_engine(job, workload, |bench| -> Result<(), Failure> {
        workloads::fill_shuffled(bench, bench.count)?;
        // SAFETY: ends the process without destructors, which is the purpose.
        unsafe { libc::_exit(0) }
    });
    died.map(drop)
}

fn measure(job: &Job, workload: &Workload) -> Result<Figures, Failure> {
    if let Some(group) = &job.memory_group {
        memory_group::enter(group)?;
    }
    let before_open = Usage::now()?;
    let (figures, engine) = with_engine(job, workload, |bench| {
        workload.prepare(bench)?;
        let is_recovery = workload.start == Start::Killed;
        let before = if is_recovery { before_open } else { Usage::now()? };
        let written_before = bench.engine.written_bytes();
        let done = workload.run(bench)?;
        let usage = Usage::now()?.since(&before);
        bench.engine.settle()?;
        let mut settled = Usage::now()?.since(&before);
        // Pages that are written again before the disk has had them are made dirty once.
        let written_bytes = bench.engine.written_bytes() - written_before;
        settled.written_bytes = settled.written_bytes.max(written_bytes);
        let latencies = done.latencies.iter();
        Ok(Figures {
            op_count: done.op_count,
            user_bytes: done.user_bytes,
            usage,
            settled,
            latencies: latencies.map(|(kind, times)| ((*kind).into(), times.into())).collect(),
            disk_bytes: usage::disk_bytes(&job.dir)?,
            memory: Memory::now()?,
            memory_bytes_set: job.setup.memory_bytes,
            lost_count: if is_recovery { lost(bench)? } else { 0 },
            stats: bench.engine.stats(),
        })
    })?;
    engine.close()?;
    Ok(figures)
}

fn lost(bench: &Bench<'_>) -> Result<u64, Failure> {
    let count = bench.engine.scan(b"0", u64::MAX, &mut |_, _| {})?;
    Ok(bench.count.saturating_sub(count))
}
