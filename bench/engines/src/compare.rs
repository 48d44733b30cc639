//! `compare`: runs the workloads on the engines and keeps the results file up to date.
//!
//! Engines take turns within each workload, in an order that rotates by round. Every run has its
//! own process and, if it writes, its own copy of the data, which are made once for each engine.

use crate::Failure;
use crate::alone::scratch::Scratch;
use crate::child::{self, Figures, Job, Step};
use crate::engine::{Kind, Setup};
use crate::goals;
use crate::memory_group;
use crate::results::{Results, Run};
use crate::settings::Settings;
use crate::table;
use crate::workloads::{Start, Workload};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const MS: u64 = 1_000_000;
/// Kvant's least budget.
const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// Returns whether every goal is met, if they are checked.
pub(crate) fn run(settings: &Settings) -> Result<bool, Failure> {
    let mut results = Results::default();
    for file in &settings.from {
        results.append(serde_json::from_slice(&fs::read(file)?)?)?;
    }
    if settings.from.is_empty() {
        results.set_up(settings);
        Measurement::new(settings)?.run_all(&mut results)?;
    }
    let verdicts = goals::verdicts(&results);
    let table = table::markdown(&results, &verdicts);
    fs::write(settings.out.with_extension("md"), &table)?;
    println!("{table}");
    Ok(!settings.check || verdicts.iter().all(|verdict| verdict.is_met))
}

struct Measurement<'a> {
    settings: &'a Settings,
    scratch: Scratch,
    /// Data directories that exist.
    made: BTreeSet<PathBuf>,
}

impl<'a> Measurement<'a> {
    fn new(settings: &'a Settings) -> Result<Measurement<'a>, Failure> {
        let scratch = Scratch::new(&settings.data_dir)?;
        Ok(Measurement { settings, scratch, made: BTreeSet::new() })
    }

    fn run_all(&mut self, results: &mut Results) -> Result<(), Failure> {
        for workload in &self.settings.workloads {
            for round in 0..self.settings.rounds {
                let mut engines = self.settings.engines.clone();
                engines.rotate_left(round as usize % self.settings.engines.len());
                for engine in engines {
                    results.runs.push(self.run_undisturbed(workload, engine, round)?);
                    // A measurement that is interrupted leaves what it has.
                    fs::write(&self.settings.out, serde_json::to_vec_pretty(results)?)?;
                }
            }
        }
        Ok(())
    }

    /// Repeats a disturbed run a few times; the last attempt counts, marked.
    fn run_undisturbed(
        &mut self,
        workload: &Workload,
        engine: Kind,
        round: u64,
    ) -> Result<Run, Failure> {
        let mut attempt = 0;
        loop {
            let started = Instant::now();
            let figures = self.run_once(workload, engine, round)?;
            let (stolen, others) = (figures.settled.stolen_ns, figures.settled.others_ns());
            let is_disturbed = figures.settled.is_disturbed(self.settings.rate.is_some());
            let name = workload.name;
            let run = Run { workload: name.into(), engine, round, attempt, is_disturbed, figures };
            eprintln!(
                "{name} {} round {round}: {:.0}/s, {:.1} s in all{}",
                engine.name(),
                run.ops_per_second(),
                started.elapsed().as_secs_f64(),
                if is_disturbed {
                    format!(", disturbed: {} ms stolen, {} by others", stolen / MS, others / MS)
                } else {
                    String::new()
                }
            );
            if !is_disturbed || attempt == self.settings.retries {
                return Ok(run);
            }
            attempt += 1;
        }
    }

    fn run_once(
        &mut self,
        workload: &Workload,
        engine: Kind,
        round: u64,
    ) -> Result<Figures, Failure> {
        let own = self.scratch.path().join("run");
        let mut dir = own.clone();
        match workload.start {
            Start::Empty => {}
            Start::Read => dir = self.made_data(workload, engine)?,
            Start::Write => copy(&self.made_data(workload, engine)?, &own)?,
            Start::Killed => {
                let job = self.job(Step::MakeAndDie, workload, engine, own.clone(), round);
                start(&job)?;
            }
        }
        // Dirty pages of others would be written during the run.
        // SAFETY: a call without arguments.
        unsafe { libc::sync() };
        let job = self.job(Step::Measure, workload, engine, dir, round);
        if let Some(group) = &job.memory_group {
            memory_group::limit(group, workload.data_bytes(self.settings.records) / 4)?;
            memory_group::forget(&job.dir)?;
        }
        let output = start(&job)?;
        if own.exists() {
            fs::remove_dir_all(own)?;
        }
        Ok(serde_json::from_slice(&output)?)
    }

    /// All records of the workload's shape, made on first use.
    fn made_data(&mut self, workload: &Workload, engine: Kind) -> Result<PathBuf, Failure> {
        let name = format!("{}-{}", engine.name(), workload.shape.name);
        let dir = self.scratch.path().join(name);
        if self.made.insert(dir.clone()) {
            start(&self.job(Step::Make, workload, engine, dir.clone(), 0))?;
        }
        Ok(dir)
    }

    fn job(&self, step: Step, workload: &Workload, engine: Kind, dir: PathBuf, round: u64) -> Job {
        let settings = self.settings;
        let is_short = workload.is_short_of_memory && step == Step::Measure;
        let memory_group = settings.memory_group.clone().filter(|_| is_short);
        let quarter_bytes = workload.data_bytes(settings.records) / 4;
        let memory_bytes = match (is_short, &memory_group) {
            (true, None) => quarter_bytes.max(MEMORY_BYTES_MIN),
            // Of the group, a quarter, Kvant's default: the page cache has the rest. Three quarters
            // where nothing else caches what is read.
            (true, Some(_)) => {
                let quarters = if engine.has_direct_reads() { 3 } else { 1 };
                (quarter_bytes / 4 * quarters).max(MEMORY_BYTES_MIN)
            }
            (false, _) => settings.memory_bytes(),
        };
        Job {
            step,
            engine,
            workload: workload.name.into(),
            dir,
            records: settings.records,
            seed: settings.seed + round,
            setup: Setup {
                memory_bytes,
                reads_from_disk: memory_group.is_some(),
                rocksdb: settings.rocksdb.clone(),
            },
            rate: settings.rate.filter(|_| step == Step::Measure),
            memory_group,
        }
    }
}

/// Runs a job in a process of its own and returns what it printed.
fn start(job: &Job) -> Result<Vec<u8>, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args([child::COMMAND, &serde_json::to_string(job)?])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        let (engine, workload) = (job.engine.name(), &job.workload);
        return Err(format!("{workload} on {engine} ({:?}): {}", job.step, output.status).into());
    }
    Ok(output.stdout)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let status = Command::new("cp").arg("-a").args([from, to]).status()?;
    if status.success() { Ok(()) } else { Err(format!("cp {}: {status}", from.display()).into()) }
}
