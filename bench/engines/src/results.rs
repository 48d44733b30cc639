//! The results file: every run, and what is computed of several.

use crate::Failure;
use crate::child::Figures;
use crate::engine::Kind;
use crate::latency::Latency;
use crate::settings::Settings;
use crate::workloads::{self, Workload};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) records: u64,
    pub(crate) cache_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// Operations a second of every workload; `None`: as many as the engine took.
    #[serde(default)]
    pub(crate) rate: Option<u64>,
    pub(crate) machine: String,
    pub(crate) runs: Vec<Run>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) workload: String,
    pub(crate) engine: Kind,
    pub(crate) round: u64,
    /// Earlier attempts were disturbed.
    pub(crate) attempt: u64,
    pub(crate) is_disturbed: bool,
    pub(crate) figures: Figures,
}

impl Run {
    pub(crate) fn ops_per_second(&self) -> f64 {
        self.figures.op_count as f64 * 1e9 / self.figures.usage.at_ns.max(1) as f64
    }

    pub(crate) fn cpu_us_per_op(&self) -> f64 {
        self.figures.usage.cpu_ns as f64 / 1e3 / self.figures.op_count.max(1) as f64
    }

    /// The same with the background work that the workload left.
    pub(crate) fn settled_cpu_us_per_op(&self) -> f64 {
        self.figures.settled.cpu_ns as f64 / 1e3 / self.figures.op_count.max(1) as f64
    }

    /// Bytes written, those of later background work included, by bytes that the user wrote; 0 if
    /// that was nothing.
    pub(crate) fn write_amplification(&self) -> f64 {
        match self.figures.user_bytes {
            0 => 0.0,
            bytes => self.figures.settled.written_bytes as f64 / bytes as f64,
        }
    }
}

/// A ratio of two engines: the median of those of each round, and their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Results {
    pub(crate) fn set_up(&mut self, settings: &Settings) {
        self.records = settings.records;
        self.cache_bytes = settings.cache_bytes;
        self.memory_bytes = settings.memory_bytes();
        self.rate = settings.rate;
        self.machine = machine();
    }

    /// Adds the runs of another file of the same setup.
    pub(crate) fn append(&mut self, other: Results) -> Result<(), Failure> {
        if self.runs.is_empty() {
            *self = other;
            return Ok(());
        }
        let setup = |of: &Results| (of.records, of.cache_bytes, of.rate);
        if setup(self) != setup(&other) {
            return Err("results of different numbers of records, caches or rates".into());
        }
        self.runs.extend(other.runs);
        Ok(())
    }

    /// The workloads that were run, in their usual order.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &'static Workload> {
        workloads::ALL
            .iter()
            .filter(|workload| self.runs.iter().any(|run| run.workload == workload.name))
    }

    pub(crate) fn runs(&self, workload: &Workload, engine: Kind) -> impl Iterator<Item = &Run> {
        let name = workload.name;
        self.runs.iter().filter(move |run| run.engine == engine && run.workload == name)
    }

    /// The median of a figure over the rounds; `None` without runs.
    pub(crate) fn median(
        &self,
        workload: &Workload,
        engine: Kind,
        figure: impl Fn(&Run) -> f64,
    ) -> Option<f64> {
        median(self.runs(workload, engine).map(figure).collect())
    }

    /// A percentile of one kind of operation, as the median over the rounds, in nanoseconds.
    pub(crate) fn latency(
        &self,
        workload: &Workload,
        engine: Kind,
        kind: &str,
        percentile: impl Fn(&Latency) -> u64,
    ) -> Option<f64> {
        let latencies =
            self.runs(workload, engine).filter_map(|run| run.figures.latencies.get(kind));
        median(latencies.map(|latency| percentile(latency) as f64).collect())
    }

    /// Kinds of operations of a workload.
    pub(crate) fn latency_kinds(&self, workload: &Workload) -> Vec<&str> {
        let run = self.runs.iter().find(|run| run.workload == workload.name);
        run.into_iter().flat_map(|run| run.figures.latencies.keys()).map(String::as_str).collect()
    }

    /// The LSM peer with the most operations a second.
    pub(crate) fn fastest_peer(&self, workload: &Workload) -> Option<Kind> {
        let negated = |peer| Some(-self.median(workload, peer, Run::ops_per_second)?);
        Some(least_peer(negated)?.0)
    }

    /// A figure of Kvant by that of a peer, round by round.
    pub(crate) fn ratio(
        &self,
        workload: &Workload,
        peer: Kind,
        figure: impl Fn(&Run) -> f64,
    ) -> Option<Ratio> {
        let rounds = self.runs(workload, Kind::Kvant).filter_map(|own| {
            let other = self.runs(workload, peer).find(|run| run.round == own.round)?;
            Some(figure(own) / figure(other))
        });
        let ratios: Vec<f64> = rounds.filter(|ratio| ratio.is_finite()).collect();
        let min = ratios.iter().copied().min_by(f64::total_cmp)?;
        let max = ratios.iter().copied().max_by(f64::total_cmp)?;
        Some(Ratio { median: median(ratios)?, min, max })
    }
}

/// The LSM peer with the lowest figure.
pub(crate) fn least_peer(figure: impl Fn(Kind) -> Option<f64>) -> Option<(Kind, f64)> {
    let figures = Kind::LSM_PEERS.into_iter().filter_map(|peer| Some((peer, figure(peer)?)));
    figures.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

/// The processor and the number of CPUs, as the kernel has them.
fn machine() -> String {
    let table = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("model name")).collect();
    let name = names.first().map_or("", |name| name.trim_start_matches([' ', '\t', ':']));
    format!("{} CPUs, {name}", names.len())
}

#[cfg(test)]
mod tests;
